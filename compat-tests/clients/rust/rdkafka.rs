//! rdkafka, which binds librdkafka, from 0.26 on. The feature "old" is a version before 0.29.
mod common;
mod group;

use std::sync::Mutex;
use std::time::{Duration, Instant};

use futures_executor::block_on;
use rdkafka::admin::{AdminClient, AdminOptions, AlterConfig, NewPartitions, NewTopic, ResourceSpecifier, TopicReplication, TopicResult};
use rdkafka::client::{ClientContext, DefaultClientContext};
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
#[cfg(not(feature = "old"))]
use rdkafka::message::Header;
use rdkafka::message::{Headers, Message, OwnedHeaders};
use rdkafka::producer::{BaseRecord, DeliveryResult, Producer, ProducerContext, ThreadedProducer};
use rdkafka::topic_partition_list::TopicPartitionList;
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::Offset;

use common::{Read, Result, PARTITIONS, RECORDS, address, check_records, headers, key, name, now_ms, text, value};

const WAIT: Duration = Duration::from_secs(30);

type Options<'a> = &'a [(&'a str, &'a str)];

fn config(options: Options) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", address());
    for (k, v) in options {
        config.set(*k, *v);
    }
    config
}

/// Failures are the records of a producer that were not delivered.
struct Failures(Mutex<Vec<String>>);

impl ClientContext for Failures {}

impl ProducerContext for Failures {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, _: ()) {
        if let Err((e, _)) = result {
            self.0.lock().unwrap().push(e.to_string());
        }
    }
}

struct Sender(ThreadedProducer<Failures>);

impl Sender {
    fn new(options: Options) -> Result<Sender> {
        Ok(Sender(config(options).create_with_context(Failures(Mutex::default()))?))
    }

    fn send(&self, record: BaseRecord<'_, String, String>) -> Result<()> {
        self.0.send(record).map_err(|(e, _)| e.into())
    }

    /// flush returns when all that was sent is acknowledged.
    fn flush(&self) -> Result<()> {
        #[cfg(feature = "old")]
        self.0.flush(WAIT);
        #[cfg(not(feature = "old"))]
        self.0.flush(WAIT)?;
        check!(self.0.in_flight_count() == 0, "{} records are still unsent", self.0.in_flight_count());
        let failed = std::mem::take(&mut *self.0.context().0.lock().unwrap());
        check!(failed.is_empty(), "{failed:?}");
        Ok(())
    }
}

#[cfg(feature = "old")]
const NULL_HEADER: Option<&str> = Some("");
#[cfg(not(feature = "old"))]
const NULL_HEADER: Option<&str> = None;

#[cfg(feature = "old")]
fn with_headers(all: &[(String, Option<String>)]) -> OwnedHeaders {
    all.iter().fold(OwnedHeaders::new(), |h, (k, v)| h.add(k, v.as_deref().unwrap_or_default()))
}

#[cfg(not(feature = "old"))]
fn with_headers(all: &[(String, Option<String>)]) -> OwnedHeaders {
    all.iter().fold(OwnedHeaders::new(), |h, (k, v)| h.insert(Header { key: k, value: v.as_ref() }))
}

#[cfg(feature = "old")]
fn header(headers: &impl Headers, i: usize) -> (String, Option<String>) {
    headers.get(i).map(|(k, v)| (k.to_string(), Some(text(v)))).unwrap()
}

#[cfg(not(feature = "old"))]
fn header(headers: &impl Headers, i: usize) -> (String, Option<String>) {
    let h = headers.get(i);
    (h.key.to_string(), h.value.map(text))
}

fn admin_client() -> Result<AdminClient<DefaultClientContext>> {
    Ok(config(&[]).create()?)
}

/// done is the outcome of the one topic that was asked for.
fn done(results: Vec<TopicResult>) -> Result<()> {
    for r in results {
        r.map_err(|(topic, code)| format!("{topic}: {code}"))?;
    }
    Ok(())
}

fn options() -> AdminOptions {
    AdminOptions::new().request_timeout(Some(WAIT)).operation_timeout(Some(WAIT))
}

fn new_topic(what: &str, partitions: i32) -> Result<String> {
    let topic = name(what);
    let new = NewTopic::new(&topic, partitions, TopicReplication::Fixed(1));
    done(block_on(admin_client()?.create_topics(&[new], &options()))?)?;
    Ok(topic)
}

fn consumer(options: Options) -> Result<BaseConsumer> {
    let mut config = config(&[("group.id", "none"), ("auto.offset.reset", "earliest"), ("enable.auto.commit", "false"), ("check.crcs", "true")]);
    for (k, v) in options {
        config.set(*k, *v);
    }
    Ok(config.create()?)
}

fn partition(topic: &str, partition: i32, offset: Offset) -> Result<TopicPartitionList> {
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, partition, offset)?;
    Ok(list)
}

/// next waits so long for a record.
fn next(c: &BaseConsumer, wait_ms: u64) -> Result<Option<Read>> {
    let Some(message) = c.poll(Duration::from_millis(wait_ms)) else { return Ok(None) };
    let m = message?;
    Ok(Some(Read {
        partition: m.partition(),
        offset: m.offset(),
        key: m.key().map(text),
        value: m.payload().map(text),
        headers: m.headers().map(|all| (0..all.count()).map(|i| header(all, i)).collect()).unwrap_or_default(),
    }))
}

/// read reads count records of all partitions without a group, and waits a moment for one too many.
fn read(topic: &str, count: usize, options: Options) -> Result<Vec<Read>> {
    let c = consumer(options)?;
    let mut all = TopicPartitionList::new();
    for p in 0..PARTITIONS {
        all.add_partition_offset(topic, p, Offset::Beginning)?; // the old client takes no offset 0
    }
    c.assign(&all)?;
    let (mut got, mut idle) = (Vec::new(), 0);
    while idle < if got.len() >= count { 3 } else { 100 } {
        match next(&c, 100)? {
            Some(record) => {
                got.push(record);
                idle = 0;
            }
            None => idle += 1,
        }
    }
    Ok(got)
}

fn round_trip(option: (&str, &str)) -> Result<()> {
    let topic = new_topic("codec", PARTITIONS)?;
    let sender = Sender::new(&[("linger.ms", "20"), ("batch.num.messages", "50"), option])?;
    for i in 0..RECORDS {
        let (k, v) = (key(i), value(i));
        let mut record = BaseRecord::to(&topic).partition(i as i32 % PARTITIONS).headers(with_headers(&headers(i, NULL_HEADER)));
        (record.key, record.payload) = (k.as_ref(), v.as_ref());
        sender.send(record)?;
    }
    sender.flush()?;
    check_records(&read(&topic, RECORDS, &[])?, NULL_HEADER)
}

/// restart stops in the middle and goes on from the commit, in records of one codec.
#[cfg(not(feature = "old"))]
fn restart(codec: &str) -> Result<()> {
    let topic = new_topic("restart", 1)?;
    let sender = Sender::new(&[("compression.codec", codec)])?;
    for i in 0..400 {
        sender.send(BaseRecord::to(&topic).partition(0).payload(&format!("value {i}")))?;
    }
    sender.flush()?;
    let group = [("group.id", topic.as_str())];
    let first = consumer(&group)?;
    first.assign(&partition(&topic, 0, Offset::Stored)?)?;
    awaited(&first)?;
    let mut commit = partition(&topic, 0, Offset::Offset(37))?;
    commit.find_partition(&topic, 0).unwrap().set_metadata("a note");
    first.commit(&commit, CommitMode::Sync)?;
    drop(first);
    let second = consumer(&group)?;
    second.assign(&partition(&topic, 0, Offset::Stored)?)?;
    let committed = second.committed(WAIT)?;
    let at = &committed.elements()[0];
    check!(at.offset() == Offset::Offset(37) && at.metadata() == "a note", "what is committed is {committed:?}");
    for i in 37..400 {
        let r = awaited(&second)?;
        check!(r.offset == i && r.value == Some(format!("value {i}")), "instead of record {i} came {r:?}");
    }
    Ok(())
}

#[cfg(not(feature = "old"))]
fn awaited(c: &BaseConsumer) -> Result<Read> {
    let deadline = Instant::now() + WAIT;
    loop {
        if let Some(record) = next(c, 100)? {
            return Ok(record);
        }
        check!(Instant::now() < deadline, "no record came");
    }
}

fn offsets_by_time() -> Result<()> {
    let topic = new_topic("time", 1)?;
    let start = now_ms() - 3_600_000;
    let sender = Sender::new(&[])?;
    for i in 0..10 {
        sender.send(BaseRecord::to(&topic).partition(0).payload(&"v".to_string()).timestamp(start + i * 1000))?;
    }
    sender.flush()?;
    let c = consumer(&[])?;
    for (ms, want) in [(0, Offset::Offset(0)), (4500, Offset::Offset(5)), (60_000, Offset::End)] {
        let at = c.offsets_for_times(partition(&topic, 0, Offset::Offset(start + ms))?, WAIT)?;
        let at = at.elements()[0].offset();
        check!(at == want, "the offset at {ms} ms is {at:?}");
    }
    let ends = c.fetch_watermarks(&topic, 0, WAIT)?;
    check!(ends == (0, 10), "the ends are {ends:?}");
    Ok(())
}

fn transaction() -> Result<()> {
    let (topic, group, id) = (new_topic("txn", PARTITIONS)?, name("txn-group"), name("txn"));
    let sender = Sender::new(&[("transactional.id", &id)])?;
    sender.0.init_transactions(WAIT)?;
    for part in 0..3 {
        sender.0.begin_transaction()?;
        for i in 0..10 {
            sender.send(BaseRecord::to(&topic).partition(i % PARTITIONS).payload(&part.to_string()))?;
        }
        sender.flush()?; // an abort would drop what has not been sent
        if part == 2 {
            let member = consumer(&[("group.id", &group)])?.group_metadata().ok_or("the consumer has no group")?;
            sender.0.send_offsets_to_transaction(&partition(&topic, 0, Offset::Offset(7))?, &member, WAIT)?;
        }
        match part {
            1 => sender.0.abort_transaction(WAIT)?,
            _ => sender.0.commit_transaction(WAIT)?,
        }
    }
    for (level, parts) in [("read_committed", vec!["0", "2"]), ("read_uncommitted", vec!["0", "1", "2"])] {
        let got = read(&topic, parts.len() * 10, &[("isolation.level", level)])?;
        let count = |part: &str| got.iter().filter(|r| r.value.as_deref() == Some(part)).count();
        check!(got.len() == parts.len() * 10 && parts.iter().all(|p| count(p) == 10), "{level} reads {got:?}");
    }
    let at = consumer(&[("group.id", &group)])?.committed_offsets(partition(&topic, 0, Offset::Invalid)?, WAIT)?;
    check!(at.elements()[0].offset() == Offset::Offset(7), "the group's offset is {at:?}");
    Ok(())
}

fn fencing() -> Result<()> {
    let (topic, id) = (new_topic("fence", PARTITIONS)?, name("fence"));
    let begin = |value: &str| -> Result<Sender> {
        let sender = Sender::new(&[("transactional.id", &id)])?;
        sender.0.init_transactions(WAIT)?;
        sender.0.begin_transaction()?;
        sender.send(BaseRecord::to(&topic).partition(0).payload(&value.to_string()))?;
        sender.flush()?;
        Ok(sender)
    };
    let first = begin("lost")?;
    let second = begin("kept")?;
    let ended = first.0.commit_transaction(WAIT);
    let code = ended.as_ref().err().and_then(|e| e.rdkafka_error_code());
    let fenced = [RDKafkaErrorCode::Fenced, RDKafkaErrorCode::ProducerFenced, RDKafkaErrorCode::InvalidProducerEpoch];
    check!(code.is_some_and(|c| fenced.contains(&c)), "the first producer's commit ends with {ended:?}");
    second.0.commit_transaction(WAIT)?;
    let got = read(&topic, 1, &[("isolation.level", "read_committed")])?;
    check!(got.len() == 1 && got[0].value.as_deref() == Some("kept"), "what is read is {got:?}");
    Ok(())
}

/// until waits for what goes on elsewhere.
fn until(what: &str, mut ready: impl FnMut() -> Result<bool>) -> Result<()> {
    let deadline = Instant::now() + WAIT;
    while !ready()? {
        check!(Instant::now() < deadline, "not after {WAIT:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn admin() -> Result<()> {
    let topic = new_topic("admin", PARTITIONS)?;
    let admin = admin_client()?;
    let reader = consumer(&[("group.id", &topic)])?;
    let partitions = || -> Result<usize> {
        let all = reader.fetch_metadata(None, WAIT)?;
        Ok(all.topics().iter().find(|t| t.name() == topic).map_or(0, |t| t.partitions().len()))
    };
    until("the topic is listed", || Ok(partitions()? == PARTITIONS as usize))?;
    done(block_on(admin.create_partitions(&[NewPartitions::new(&topic, 4)], &options()))?)?;
    until("the topic has four partitions", || Ok(partitions()? == 4))?;
    let resource = ResourceSpecifier::Topic(&topic);
    for altered in block_on(admin.alter_configs(&[AlterConfig::new(resource).set("retention.ms", "3600000")], &options()))? {
        altered.map_err(|(_, code)| format!("alter the configs: {code}"))?;
    }
    until("the config is altered", || {
        let described = block_on(admin.describe_configs(&[resource], &options()))?.remove(0)?;
        Ok(described.get("retention.ms").and_then(|e| e.value.as_deref()) == Some("3600000"))
    })?;
    reader.commit(&partition(&topic, 1, Offset::Offset(5))?, CommitMode::Sync)?;
    let groups = reader.fetch_group_list(None, WAIT)?;
    let states: Vec<_> = groups.groups().iter().filter(|g| g.name() == topic).map(|g| g.state()).collect();
    check!(states == ["Empty"], "the group's states are {states:?}");
    #[cfg(not(feature = "old"))]
    for deleted in block_on(admin.delete_groups(&[&topic], &options()))? {
        deleted.map_err(|(group, code)| format!("delete group {group}: {code}"))?;
    }
    done(block_on(admin.delete_topics(&[&topic], &options()))?)?;
    until("the topic is gone", || Ok(partitions()? == 0))
}

#[cfg(not(feature = "old"))]
fn delete_records() -> Result<()> {
    let topic = new_topic("delete", 1)?;
    let sender = Sender::new(&[])?;
    for i in 0..RECORDS {
        sender.send(BaseRecord::to(&topic).partition(0).payload(&format!("value {i}")))?;
    }
    sender.flush()?;
    let deleted = block_on(admin_client()?.delete_records(&partition(&topic, 0, Offset::Offset(100))?, &options()))?;
    deleted.elements()[0].error()?;
    let c = consumer(&[])?;
    let ends = c.fetch_watermarks(&topic, 0, WAIT)?;
    check!(ends == (100, RECORDS as i64), "the ends are {ends:?}");
    c.assign(&partition(&topic, 0, Offset::Beginning)?)?;
    let first = awaited(&c)?;
    check!(first.offset == 100 && first.value.as_deref() == Some("value 100"), "the first record is {first:?}");
    Ok(())
}

fn run(case: &str) -> Result<()> {
    match case.split_once('-').unwrap_or((case, "")) {
        ("codec", codec) => round_trip(("compression.codec", codec)),
        ("acks", level) => round_trip(("acks", level)),
        ("idempotent", _) => round_trip(("enable.idempotence", "true")),
        ("group", assignor) => group::run(assignor),
        ("offsets", "by-time") => offsets_by_time(),
        ("transaction", _) => transaction(),
        ("fencing", _) => fencing(),
        ("admin", _) => admin(),
        #[cfg(not(feature = "old"))]
        ("restart", codec) => restart(codec),
        #[cfg(not(feature = "old"))]
        ("delete", "records") => delete_records(),
        _ => Err(format!("there is no case {case}").into()),
    }
}

fn main() {
    common::main(run);
}
