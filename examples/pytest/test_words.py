from kafka import KafkaConsumer, KafkaProducer, TopicPartition


def test_words_come_back_in_order(dohle):
    words = [b"jackdaw", b"jackfruit", b"jackpot"]
    producer = KafkaProducer(bootstrap_servers=dohle)
    for word in words:
        producer.send("words", word, partition=2)
    producer.close()
    consumer = KafkaConsumer(bootstrap_servers=dohle, auto_offset_reset="earliest", consumer_timeout_ms=5000)
    consumer.assign([TopicPartition("words", 2)])
    assert [next(consumer).value for _ in words] == words
    consumer.close()
