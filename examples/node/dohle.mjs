// A Kafka server of its own for a test file: `const dohle = await startDohle('words:3')`, and `await dohle.stop()` at the end.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

export async function startDohle(...topics) {
  const words = ['start', '--test', '--log-level', 'warn', ...topics.flatMap(topic => ['--topic', topic])]
  const child = spawn(process.env.DOHLE ?? 'dohle', words, { stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  const first = once(createInterface({ input: child.stdout }), 'line')
  const ready = await Promise.race([first, ended.then(([code]) => { throw new Error(`dohle ended with ${code}`) })])
  return {
    bootstrap: JSON.parse(ready[0]).bootstrap,
    async stop() {
      child.stdin.end() // It ends with its standard input.
      await ended
    }
  }
}
