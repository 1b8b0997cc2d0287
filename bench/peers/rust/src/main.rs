//! Workload W1 for the crate kafka-protocol: it reads and writes the samples of `build/bench/codec samples DIR`.
//!
//!     codec DIR MILLISECONDS      a line `NAME decode|encode NANOSECONDS` per sample, the fastest of 15 rounds
use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::*;
use kafka_protocol::protocol::{Decodable, Encodable, Message};
use std::hint::black_box;
use std::time::{Duration, Instant};

const ROUNDS: usize = 15;

fn samples(path: &str) -> Option<Vec<Bytes>> {
    let mut rest = Bytes::from(std::fs::read(path).ok()?);
    let mut all = Vec::new();
    while !rest.is_empty() {
        let size = u32::from_be_bytes(rest.split_to(4)[..].try_into().unwrap());
        all.push(rest.split_to(size as usize));
    }
    Some(all)
}

fn fastest(mut one: impl FnMut(usize), count: usize, round: Duration) -> f64 {
    let mut each: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let (start, mut done) = (Instant::now(), 0);
            while start.elapsed() < round {
                for i in 0..16 * count {
                    one(i % count);
                }
                done += 16 * count;
            }
            start.elapsed().as_nanos() as f64 / done as f64
        })
        .collect();
    each.sort_by(f64::total_cmp);
    each[0]
}

fn bench<M: Decodable + Encodable + Message>(dir: &str, name: &str, version: i16, round: Duration) {
    if version > M::VERSIONS.max {
        return; // The crate is behind.
    }
    let sample = format!("{name}-{version}");
    let Some(all) = samples(&format!("{dir}/{sample}")) else { return };
    let read: Vec<M> = all.iter().map(|bytes| M::decode(&mut bytes.clone(), version).expect("a sample")).collect();
    let mut out = BytesMut::with_capacity(all.iter().map(Bytes::len).max().unwrap_or(0));
    for (message, bytes) in read.iter().zip(&all) {
        out.clear();
        message.encode(&mut out, version).expect("a sample");
        assert_eq!(out, bytes, "{sample} is not written as it was read");
    }
    let decode = fastest(|i| drop(black_box(M::decode(&mut all[i].clone(), version).unwrap())), all.len(), round);
    println!("{sample} decode {decode:.2}");
    let encode = fastest(
        |i| {
            out.clear();
            black_box(read[i].compute_size(version).unwrap());
            read[i].encode(&mut out, version).unwrap();
        },
        all.len(),
        round,
    );
    println!("{sample} encode {encode:.2}");
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let (dir, round) = (&words[1], Duration::from_millis(words[2].parse().expect("milliseconds")));
    bench::<HeartbeatRequest>(dir, "HeartbeatRequest", 4, round);
    bench::<ConsumerGroupHeartbeatRequest>(dir, "ConsumerGroupHeartbeatRequest", 1, round);
    bench::<BrokerHeartbeatRequest>(dir, "BrokerHeartbeatRequest", 2, round);
    bench::<ApiVersionsResponse>(dir, "ApiVersionsResponse", 4, round);
    bench::<FetchRequest>(dir, "FetchRequest", 16, round);
    bench::<FetchResponse>(dir, "FetchResponse", 16, round);
    bench::<ProduceRequest>(dir, "ProduceRequest", 9, round);
    bench::<OffsetCommitRequest>(dir, "OffsetCommitRequest", 9, round);
    bench::<JoinGroupResponse>(dir, "JoinGroupResponse", 9, round);
    bench::<MetadataResponse>(dir, "MetadataResponse", 12, round);
}
