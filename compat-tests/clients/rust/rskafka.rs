//! rskafka, a client of partitions without groups, from 0.2 on. The feature "old" is a version before 0.4.
mod common;

use std::future::Future;

use rskafka::client::partition::{Compression, OffsetAt, PartitionClient};
use rskafka::client::{Client, ClientBuilder};
use rskafka::record::Record;

use common::{PARTITIONS, RECORDS, Read, Result, address, check_records, headers, key, name, now_ms, text, value};

const WAIT_MS: i32 = 30_000;

/// What the client knows no null for.
const NULL_HEADER: Option<&str> = Some("");

#[cfg(feature = "old")]
use age_0_2::*;
#[cfg(not(feature = "old"))]
use age_0_6::*;

#[cfg(feature = "old")]
mod age_0_2 {
    use super::*;

    pub type Time = time::OffsetDateTime;

    pub fn time(ms: i64) -> Time {
        Time::from_unix_timestamp_nanos(i128::from(ms) * 1_000_000).expect("a time")
    }

    pub async fn partition(client: &Client, topic: &str, partition: i32) -> Result<PartitionClient> {
        Ok(client.partition_client(topic, partition).await?)
    }

    pub async fn create(client: &Client, topic: &str, partitions: i32) -> Result<()> {
        Ok(client.controller_client().await?.create_topic(topic, partitions, 1, WAIT_MS).await?)
    }
}

#[cfg(not(feature = "old"))]
mod age_0_6 {
    use super::*;
    use rskafka::client::partition::UnknownTopicHandling;

    pub type Time = chrono::DateTime<chrono::Utc>;

    pub fn time(ms: i64) -> Time {
        Time::from_timestamp_millis(ms).expect("a time")
    }

    pub async fn partition(client: &Client, topic: &str, partition: i32) -> Result<PartitionClient> {
        Ok(client.partition_client(topic, partition, UnknownTopicHandling::Retry).await?)
    }

    pub async fn create(client: &Client, topic: &str, partitions: i32) -> Result<()> {
        Ok(client.controller_client()?.create_topic(topic, partitions, 1, WAIT_MS).await?)
    }
}

async fn connect() -> Result<Client> {
    Ok(ClientBuilder::new(vec![address()]).build().await?)
}

async fn new_topic(client: &Client, what: &str, partitions: i32) -> Result<String> {
    let topic = name(what);
    create(client, &topic, partitions).await?;
    Ok(topic)
}

fn record(i: usize, at: Time) -> Record {
    Record {
        key: key(i).map(String::into_bytes),
        value: value(i).map(String::into_bytes),
        headers: headers(i, NULL_HEADER).into_iter().map(|(k, v)| (k, v.unwrap_or_default().into_bytes())).collect(),
        timestamp: at,
    }
}

/// read reads a partition from an offset up to its end.
async fn read(from: &PartitionClient, partition: i32, mut offset: i64) -> Result<Vec<Read>> {
    let mut got = Vec::new();
    loop {
        let (records, high_watermark) = from.fetch_records(offset, 1..1_000_000, 1_000).await?;
        for r in records {
            check!(r.offset == offset, "offset {} came instead of {offset}", r.offset);
            offset += 1;
            let (key, value) = (r.record.key.as_deref().map(text), r.record.value.as_deref().map(text));
            let headers = r.record.headers.iter().map(|(k, v)| (k.clone(), Some(text(v)))).collect();
            got.push(Read { partition, offset: r.offset, key, value, headers });
        }
        if offset >= high_watermark {
            return Ok(got);
        }
    }
}

async fn round_trip(codec: Compression) -> Result<()> {
    let client = connect().await?;
    let topic = new_topic(&client, "codec", PARTITIONS).await?;
    let mut got = Vec::new();
    for p in 0..PARTITIONS {
        let partition = partition(&client, &topic, p).await?;
        let mine: Vec<_> = (0..RECORDS).filter(|i| *i as i32 % PARTITIONS == p).collect();
        for chunk in mine.chunks(50) {
            let records = chunk.iter().map(|i| record(*i, time(now_ms()))).collect();
            partition.produce(records, codec).await?;
        }
        got.append(&mut read(&partition, p, 0).await?);
    }
    check_records(&got, NULL_HEADER)
}

/// one makes a topic of one partition with some records, whose times are one second apart.
async fn one(client: &Client, what: &str, records: usize, start: i64) -> Result<(String, PartitionClient)> {
    let topic = new_topic(client, what, 1).await?;
    let partition = partition(client, &topic, 0).await?;
    let records = (0..records).map(|i| record(i, time(start + 1000 * i as i64))).collect();
    partition.produce(records, Compression::NoCompression).await?;
    Ok((topic, partition))
}

async fn check_ends(partition: &PartitionClient, want: (i64, i64)) -> Result<()> {
    let ends = (partition.get_offset(OffsetAt::Earliest).await?, partition.get_offset(OffsetAt::Latest).await?);
    check!(ends == want, "the ends are {ends:?}");
    Ok(())
}

#[cfg(not(feature = "old"))]
async fn offsets_by_time() -> Result<()> {
    let start = now_ms() - 3_600_000;
    let (_, partition) = one(&connect().await?, "time", 10, start).await?;
    for (ms, want) in [(0, 0), (4500, 5), (60_000, -1)] {
        let at = partition.get_offset(OffsetAt::Timestamp(time(start + ms))).await?;
        check!(at == want, "the offset at {ms} ms is {at}");
    }
    check_ends(&partition, (0, 10)).await
}

async fn delete_records() -> Result<()> {
    let (_, partition) = one(&connect().await?, "delete", RECORDS, now_ms()).await?;
    check_ends(&partition, (0, RECORDS as i64)).await?;
    partition.delete_records(100, WAIT_MS).await?;
    check_ends(&partition, (100, RECORDS as i64)).await?;
    let got = read(&partition, 0, 100).await?;
    let first = got.first().ok_or("nothing came")?;
    check!(got.len() == RECORDS - 100 && first.value == value(100), "{} records came, the first is {first:?}", got.len());
    let before = partition.fetch_records(99, 1..1_000_000, 1_000).await;
    check!(before.is_err(), "before the first record came {before:?}");
    Ok(())
}

async fn admin() -> Result<()> {
    let client = connect().await?;
    let topic = new_topic(&client, "admin", PARTITIONS).await?;
    let listed = || async { Result::Ok(client.list_topics().await?.into_iter().find(|t| t.name == topic)) };
    let partitions = listed().await?.map(|t| t.partitions.into_iter().collect::<Vec<_>>());
    check!(partitions == Some(vec![0, 1]), "the topic's partitions are {partitions:?}");
    let again = create(&client, &topic, PARTITIONS).await;
    check!(again.is_err(), "the topic is created again");
    #[cfg(not(feature = "old"))]
    {
        client.controller_client()?.delete_topic(&topic, WAIT_MS).await?;
        let left = listed().await?;
        check!(left.is_none(), "after the deletion there is {left:?}");
    }
    Ok(())
}

fn run(case: &str) -> Result<()> {
    match case {
        "codec-none" | "acks-all" => wait(round_trip(Compression::NoCompression)),
        "codec-gzip" => wait(round_trip(Compression::Gzip)),
        "codec-snappy" => wait(round_trip(Compression::Snappy)),
        "codec-lz4" => wait(round_trip(Compression::Lz4)),
        "codec-zstd" => wait(round_trip(Compression::Zstd)),
        #[cfg(not(feature = "old"))]
        "offsets-by-time" => wait(offsets_by_time()),
        "delete-records" => wait(delete_records()),
        "admin" => wait(admin()),
        _ => Err(format!("there is no case {case}").into()),
    }
}

fn wait(case: impl Future<Output = Result<()>>) -> Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(case)
}

fn main() {
    common::main(run);
}
