package words

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"
)

// startDohle starts a Kafka server of its own for a test, ends it with the test, and returns its address.
func startDohle(t testing.TB, topics ...string) string {
	t.Helper()
	program := os.Getenv("DOHLE")
	if program == "" {
		program = "dohle"
	}
	arguments := []string{"start", "--test", "--log-level", "warn"}
	for _, topic := range topics {
		arguments = append(arguments, "--topic", topic)
	}
	command := exec.Command(program, arguments...)
	command.Stderr = os.Stderr
	input, _ := command.StdinPipe()
	output, _ := command.StdoutPipe()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { input.Close(); command.Wait() }) // It ends with its standard input.
	var ready struct{ Bootstrap string }
	if err := json.NewDecoder(output).Decode(&ready); err != nil {
		t.Fatal(err)
	}
	return ready.Bootstrap
}
