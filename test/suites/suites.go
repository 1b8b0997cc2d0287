// Package suites names the Go clients whose own tests run-interop runs.
package suites

import (
	_ "github.com/segmentio/kafka-go"
	_ "github.com/twmb/franz-go/pkg/kgo"
)
