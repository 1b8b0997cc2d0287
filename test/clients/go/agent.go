// The agent of franz-go; see ../README.md for what an agent answers.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sort"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type record struct {
	P int32       `json:"p"`
	O int64       `json:"o"`
	K *string     `json:"k"`
	V *string     `json:"v"`
	H [][2]string `json:"h"`
	T *int64      `json:"t"`
}

type ask struct {
	Do, Address, Topic, Codec  string
	Idempotent                 bool
	Partitions, Count, Seconds int
	Timestamp                  int64
	Records                    []record
}

type answer map[string]any

var codecs = map[string]kgo.CompressionCodec{
	"": kgo.NoCompression(), "none": kgo.NoCompression(), "gzip": kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

func producer(a ask) (*kgo.Client, error) {
	options := []kgo.Opt{
		kgo.SeedBrokers(a.Address), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.AllowAutoTopicCreation(),
		kgo.ProducerBatchCompression(codecs[a.Codec]), kgo.ProducerBatchMaxBytes(1048588), kgo.MaxBufferedRecords(5000),
	}
	if !a.Idempotent {
		options = append(options, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(1))
	}
	return kgo.NewClient(options...)
}

func bytes(s *string) []byte {
	if s == nil {
		return nil
	}
	return []byte(*s)
}

func text(b []byte) *string {
	if b == nil {
		return nil
	}
	s := string(b)
	return &s
}

func write(a ask) (answer, error) {
	client, err := producer(a)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var records []*kgo.Record
	for _, r := range a.Records {
		out := &kgo.Record{Topic: a.Topic, Partition: r.P, Key: bytes(r.K), Value: bytes(r.V)}
		for _, h := range r.H {
			out.Headers = append(out.Headers, kgo.RecordHeader{Key: h[0], Value: []byte(h[1])})
		}
		if r.T != nil {
			out.Timestamp = time.UnixMilli(*r.T)
		}
		records = append(records, out)
	}
	return answer{}, client.ProduceSync(context.Background(), records...).FirstErr()
}

func read(a ask) (answer, error) {
	from := map[int32]kgo.Offset{}
	for p := 0; p < a.Partitions; p++ {
		from[int32(p)] = kgo.NewOffset().AtStart()
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(a.Address), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{a.Topic: from}))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	records := []record{}
	for len(records) < a.Count && ctx.Err() == nil {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return nil, err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			at := r.Timestamp.UnixMilli()
			one := record{P: r.Partition, O: r.Offset, K: text(r.Key), V: text(r.Value), H: [][2]string{}, T: &at}
			for _, h := range r.Headers {
				one.H = append(one.H, [2]string{h.Key, string(h.Value)})
			}
			records = append(records, one)
		})
	}
	return answer{"records": records}, nil
}

func offset(a ask) (answer, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(a.Address))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	partition := kmsg.NewListOffsetsRequestTopicPartition()
	partition.Timestamp = a.Timestamp
	topic := kmsg.NewListOffsetsRequestTopic()
	topic.Topic = a.Topic
	topic.Partitions = append(topic.Partitions, partition)
	request := kmsg.NewPtrListOffsetsRequest()
	request.Topics = append(request.Topics, topic)
	response, err := request.RequestWith(context.Background(), client)
	if err != nil {
		return nil, err
	}
	got := response.Topics[0].Partitions[0]
	return answer{"offset": got.Offset}, kerr.ErrorForCode(got.ErrorCode)
}

func load(a ask) (answer, error) {
	client, err := producer(a)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var lock sync.Mutex
	failed := []int{}
	sent := 0
	for limit := time.Now().Add(time.Duration(a.Seconds) * time.Second); time.Now().Before(limit); sent++ {
		i := sent
		client.Produce(context.Background(), &kgo.Record{Topic: a.Topic, Value: fmt.Appendf(nil, "load-%07d", i)}, func(_ *kgo.Record, err error) {
			if err != nil {
				lock.Lock()
				failed = append(failed, i)
				lock.Unlock()
			}
		})
		if i%50 == 0 {
			time.Sleep(5 * time.Millisecond)
		}
	}
	err = client.Flush(context.Background())
	sort.Ints(failed)
	return answer{"sent": sent, "failed": failed}, err
}

func version() (answer, error) {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == "github.com/twmb/franz-go" {
			return answer{"version": module.Version}, nil
		}
	}
	return nil, errors.New("built without module information")
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var a ask
		var said answer
		if err = json.Unmarshal(line, &a); err == nil {
			switch a.Do {
			case "hello":
				said, err = version()
			case "write":
				said, err = write(a)
			case "read":
				said, err = read(a)
			case "time":
				said, err = offset(a)
			default:
				said, err = load(a)
			}
		}
		if err != nil {
			said = answer{"error": err.Error()}
		}
		_ = out.Encode(said)
	}
}
