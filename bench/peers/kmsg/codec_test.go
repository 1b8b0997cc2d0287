// Workload W1 for franz-go's kmsg: it reads and writes the samples of `build/bench/codec samples DIR` (SAMPLES=DIR).
package kmsg_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

type message interface {
	SetVersion(int16)
	MaxVersion() int16
	ReadFrom([]byte) error
	AppendTo([]byte) []byte
}

// maker finds the constructor of "HeartbeatRequest"; nil: kmsg has no such message.
func maker(name string) func() message {
	api, request := strings.CutSuffix(name, "Request")
	if !request {
		api = strings.TrimSuffix(name, "Response")
	}
	for key := int16(0); key < 200; key++ {
		if kmsg.NameForKey(key) != api {
			continue
		}
		if request {
			return func() message { return kmsg.RequestForKey(key) }
		}
		return func() message { return kmsg.ResponseForKey(key) }
	}
	return nil
}

func samples(b *testing.B, path string) [][]byte {
	rest, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	var all [][]byte
	for len(rest) > 0 {
		size := binary.BigEndian.Uint32(rest)
		all = append(all, rest[4:4+size])
		rest = rest[4+size:]
	}
	return all
}

func BenchmarkCodec(b *testing.B) {
	paths, _ := filepath.Glob(filepath.Join(os.Getenv("SAMPLES"), "*"))
	for _, path := range paths {
		name, text, _ := strings.Cut(filepath.Base(path), "-")
		number, _ := strconv.Atoi(text)
		version := int16(number)
		make := maker(name)
		if make == nil || make().MaxVersion() < version {
			continue
		}
		all := samples(b, path)
		var read []message
		for _, one := range all {
			m := make()
			m.SetVersion(version)
			if err := m.ReadFrom(one); err != nil {
				b.Fatal(err)
			}
			if !bytes.Equal(m.AppendTo(nil), one) {
				b.Fatalf("%s is not written as it was read", path)
			}
			read = append(read, m)
		}
		b.Run(filepath.Base(path)+"/decode", func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; i < b.N; i++ {
				m := make()
				m.SetVersion(version)
				if err := m.ReadFrom(all[i%len(all)]); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(filepath.Base(path)+"/encode", func(b *testing.B) {
			b.ReportAllocs()
			var out []byte
			for i := 0; i < b.N; i++ {
				out = read[i%len(read)].AppendTo(out[:0])
			}
		})
	}
}
