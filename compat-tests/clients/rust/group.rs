//! The case "group" of rdkafka: members that come and go, each polled by a thread of its own.
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::producer::BaseRecord;
use rdkafka::types::RDKafkaErrorCode;

use crate::common::Result;
use crate::{Sender, check, consumer, new_topic, next, until};

/// Seen is what a member has read, how many partitions it holds, and what it failed with.
#[derive(Default)]
struct Seen {
    values: Vec<usize>,
    held: usize,
    error: Option<String>,
}

/// A member commits after each poll that has brought something.
struct Member {
    seen: Arc<Mutex<Seen>>,
    leaving: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Member {
    fn join(consumer: BaseConsumer) -> Member {
        let (seen, leaving) = (Arc::new(Mutex::default()), Arc::new(AtomicBool::new(false)));
        let (s, l) = (Arc::clone(&seen), Arc::clone(&leaving));
        let thread = thread::spawn(move || {
            if let Err(e) = poll(&consumer, &s, &l) {
                s.lock().unwrap().error = Some(e.to_string());
            }
        });
        Member { seen, leaving, thread }
    }

    fn values(&self) -> Vec<usize> {
        self.seen.lock().unwrap().values.clone()
    }

    /// holds says whether the member has so many partitions; it fails once the member has failed.
    fn holds(&self, partitions: usize) -> Result<bool> {
        let seen = self.seen.lock().unwrap();
        check!(seen.error.is_none(), "a member failed: {:?}", seen.error);
        Ok(seen.held == partitions)
    }

    /// leave closes the consumer, by which the group learns of it.
    fn leave(self) -> Result<()> {
        self.leaving.store(true, Ordering::Relaxed);
        until("the member leaves", || Ok(self.thread.is_finished()))?;
        self.thread.join().map_err(|_| "a member panicked")?;
        let error = self.seen.lock().unwrap().error.take();
        check!(error.is_none(), "a member failed: {error:?}");
        Ok(())
    }
}

fn poll(consumer: &BaseConsumer, seen: &Mutex<Seen>, leaving: &AtomicBool) -> Result<()> {
    while !leaving.load(Ordering::Relaxed) {
        let mut values = Vec::new();
        while let Some(record) = next(consumer, if values.is_empty() { 100 } else { 0 })? {
            values.push(record.value.ok_or("a record without a value")?.parse()?);
        }
        let (held, came) = (consumer.assignment()?.count(), !values.is_empty());
        let mut now = seen.lock().unwrap();
        now.held = held;
        now.values.append(&mut values);
        drop(now);
        if came {
            commit(consumer)?;
        }
    }
    Ok(())
}

fn commit(consumer: &BaseConsumer) -> Result<()> {
    match consumer.commit_consumer_state(CommitMode::Sync) {
        Err(KafkaError::ConsumerCommit(RDKafkaErrorCode::NoOffset)) => Ok(()), // the partition was taken away since
        outcome => Ok(outcome?),
    }
}

/// Topic is filled with numbers in turn, over four partitions.
struct Topic {
    name: String,
    sender: Sender,
    sent: usize,
}

impl Topic {
    fn produce(&mut self, count: usize) -> Result<()> {
        for n in 0..count {
            let value = (self.sent + n).to_string();
            self.sender.send(BaseRecord::to(&self.name).partition(n as i32 % 4).payload(&value))?;
        }
        self.sent += count;
        self.sender.flush()
    }

    /// all_seen says whether the members have read every number between them.
    fn all_seen(&self, members: &[&Member]) -> bool {
        members.iter().flat_map(|m| m.values()).collect::<BTreeSet<_>>().len() == self.sent
    }
}

pub fn run(assignor: &str) -> Result<()> {
    let name = new_topic("group", 4)?;
    let join = || -> Result<Member> {
        let group = ("group.id", name.as_str());
        let c = match assignor {
            "consumer" => consumer(&[group, ("group.protocol", "consumer")])?, // KIP-848
            _ => consumer(&[group, ("partition.assignment.strategy", assignor), ("heartbeat.interval.ms", "200")])?,
        };
        c.subscribe(&[&name])?;
        Ok(Member::join(c))
    };
    let mut topic = Topic { name: name.clone(), sender: Sender::new(&[])?, sent: 0 };
    topic.produce(200)?;
    let first = join()?;
    until("the first member has read all", || Ok(first.holds(4)? && topic.all_seen(&[&first])))?;
    let second = join()?;
    until("each member holds two partitions", || Ok(first.holds(2)? && second.holds(2)?))?;
    for _ in 0..5 {
        if second.values().is_empty() { // the first may still have asked for what is the second's
            topic.produce(200)?;
            until("both have read all", || Ok(first.holds(2)? && second.holds(2)? && topic.all_seen(&[&first, &second])))?;
        }
    }
    check!(!second.values().is_empty(), "the second member reads nothing");
    let of_second = second.seen.clone();
    second.leave()?;
    until("the first member holds four partitions again", || first.holds(4))?;
    topic.produce(100)?;
    until("the first member has read the rest", || {
        let of_both = first.values().into_iter().chain(of_second.lock().unwrap().values.clone());
        Ok(first.holds(4)? && of_both.collect::<BTreeSet<_>>().len() == topic.sent)
    })?;
    first.leave()?;
    topic.produce(50)?;
    let third = join()?;
    until("the third member has read fifty", || Ok(third.holds(4)? && third.values().len() >= 50))?;
    let mut got = third.values();
    got.sort();
    check!(got == (topic.sent - 50..topic.sent).collect::<Vec<_>>(), "from the commit on came {got:?}");
    third.leave()
}
