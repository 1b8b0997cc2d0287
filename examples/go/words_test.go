package words

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestWordsComeBackInOrder(t *testing.T) {
	address := startDohle(t, "words:3")
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	from := map[string]map[int32]kgo.Offset{"words": {2: kgo.NewOffset().AtStart()}}
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ConsumePartitions(from))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	words := []string{"jackdaw", "jackfruit", "jackpot"}
	for _, word := range words {
		record := &kgo.Record{Topic: "words", Partition: 2, Value: []byte(word)}
		if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for len(got) < len(words) && ctx.Err() == nil {
		client.PollFetches(ctx).EachRecord(func(r *kgo.Record) { got = append(got, string(r.Value)) })
	}
	if !slices.Equal(got, words) {
		t.Fatalf("got %q, not %q", got, words)
	}
}
