//! The agent of rskafka; see ../../README.md for what an agent answers.
use chrono::{TimeZone, Utc};
use rskafka::client::partition::{Compression, OffsetAt, PartitionClient, UnknownTopicHandling};
use rskafka::client::ClientBuilder;
use rskafka::record::Record;
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, Write};

type Answer = Result<Value, Box<dyn Error>>;

async fn partition(ask: &Value, index: i32) -> Result<PartitionClient, Box<dyn Error>> {
    let address = ask["address"].as_str().ok_or("no address")?.to_owned();
    let client = ClientBuilder::new(vec![address]).build().await?;
    let topic = ask["topic"].as_str().ok_or("no topic")?;
    Ok(client.partition_client(topic, index, UnknownTopicHandling::Retry).await?)
}

fn codec(ask: &Value) -> Compression {
    match ask["codec"].as_str() {
        Some("gzip") => Compression::Gzip,
        Some("snappy") => Compression::Snappy,
        Some("lz4") => Compression::Lz4,
        Some("zstd") => Compression::Zstd,
        _ => Compression::NoCompression,
    }
}

fn bytes(value: &Value) -> Option<Vec<u8>> {
    value.as_str().map(|text| text.as_bytes().to_vec())
}

fn text(bytes: &Option<Vec<u8>>) -> Value {
    bytes.as_ref().map_or(Value::Null, |b| String::from_utf8_lossy(b).into())
}

fn record(r: &Value) -> Record {
    let mut headers = BTreeMap::new();
    for h in r["h"].as_array().into_iter().flatten() {
        headers.insert(h[0].as_str().unwrap_or("").to_owned(), bytes(&h[1]).unwrap_or_default());
    }
    let timestamp = r["t"].as_i64().and_then(|t| Utc.timestamp_millis_opt(t).single()).unwrap_or_else(Utc::now);
    Record { key: bytes(&r["k"]), value: bytes(&r["v"]), headers, timestamp }
}

async fn write(ask: &Value) -> Answer {
    let mut by_partition: BTreeMap<i32, Vec<Record>> = BTreeMap::new();
    for r in ask["records"].as_array().ok_or("no records")? {
        by_partition.entry(r["p"].as_i64().unwrap_or(0) as i32).or_default().push(record(r));
    }
    for (index, records) in by_partition {
        partition(ask, index).await?.produce(records, codec(ask)).await?;
    }
    Ok(json!({}))
}

async fn read(ask: &Value) -> Answer {
    let mut records = vec![];
    for index in 0..ask["partitions"].as_i64().ok_or("no partitions")? as i32 {
        let client = partition(ask, index).await?;
        let end = client.get_offset(OffsetAt::Latest).await?;
        let mut at = client.get_offset(OffsetAt::Earliest).await?;
        while at < end {
            let (got, _) = client.fetch_records(at, 1..4_000_000, 1000).await?;
            for one in &got {
                let headers: Vec<Value> =
                    one.record.headers.iter().map(|(k, v)| json!([k, String::from_utf8_lossy(v)])).collect();
                records.push(json!({"p": index, "o": one.offset, "k": text(&one.record.key), "v": text(&one.record.value),
                                    "h": headers, "t": one.record.timestamp.timestamp_millis()}));
            }
            at = got.last().ok_or("a fetch below the end gave nothing")?.offset + 1;
        }
    }
    Ok(json!({"records": records}))
}

async fn time(ask: &Value) -> Answer {
    let at = Utc.timestamp_millis_opt(ask["timestamp"].as_i64().ok_or("no timestamp")?).single().ok_or("no such time")?;
    Ok(json!({"offset": partition(ask, 0).await?.get_offset(OffsetAt::Timestamp(at)).await?}))
}

async fn answer(line: &str) -> Answer {
    let ask: Value = serde_json::from_str(line)?;
    match ask["do"].as_str() {
        Some("hello") => {
            let line = include_str!("../Cargo.toml").lines().find(|l| l.starts_with("rskafka")).ok_or("not named")?;
            Ok(json!({"version": line.split('"').nth(1).unwrap_or("").trim_start_matches('=')}))
        }
        Some("write") => write(&ask).await,
        Some("read") => read(&ask).await,
        Some("time") => time(&ask).await,
        _ => Err("rskafka has no idempotence".into()),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for line in std::io::stdin().lock().lines() {
        let said = runtime.block_on(answer(&line?)).unwrap_or_else(|reason| json!({"error": reason.to_string()}));
        writeln!(std::io::stdout(), "{said}")?;
    }
    Ok(())
}
