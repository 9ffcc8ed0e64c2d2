// What the Node clients' programs share: the cases by name, and how they are reported (see ../CASES.md).
import { inspect } from 'node:util'

export const address = process.argv[2]
export const partitions = 2
export const records = 300
const caseLimitMs = 90_000

export const key = i => (i % 7 === 0 ? null : `key ${i}`)
export const value = i => (i % 11 === 0 && i % 7 !== 0 ? null : `value ${i} ${'v'.repeat(i % 200)}`)
export const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))
export const newName = what => `js-${what}-${process.hrtime.bigint() % 1_000_000_000_000n}`
export const text = bytes => (bytes === null || bytes === undefined ? null : bytes.toString())

export function check (ok, ...what) {
  if (!ok) throw new Error(what.map(w => (typeof w === 'string' ? w : inspect(w, { depth: 5 }))).join(' '))
}

/** got has {partition, offset, key, value, headers: [[name, value]]} of every record, in the order in which they came. */
export function checkRecords (got, nullHeader = null) {
  check(got.length === records, got.length, 'records came, not', records)
  for (let p = 0; p < partitions; p++) {
    got.filter(r => r.partition === p).forEach((r, n) => {
      const i = n * partitions + p
      check(Number(r.offset) === n, 'record', i, 'has offset', r.offset)
      check(r.key === key(i), 'record', i, 'has key', r.key)
      check(r.value === value(i), 'record', i, 'has value', r.value)
      const want = JSON.stringify([['n', `${i}`], ['null', nullHeader]])
      check(JSON.stringify(r.headers) === want, 'record', i, 'has headers', r.headers)
    })
  }
}

/** Waits for what goes on elsewhere. */
export async function until (what, ready, limitMs = 40_000) {
  const end = Date.now() + limitMs
  while (!(await ready())) {
    check(Date.now() < end, `after ${limitMs} ms:`, await what())
    await sleep(20)
  }
}

/**
 * join() makes a member of the group in a topic of four partitions. A member has values, an array that grows; held(), how
 * many partitions it has; error, once it has failed; and leave(), which commits. produce(values) fills the topic.
 */
export async function groupCase (join, produce) {
  let next = 0
  const produced = async count => {
    await produce(Array.from({ length: count }, (_, n) => `${next + n}`))
    next += count
  }
  await produced(200)
  const first = await join()
  let members = [first]
  const told = () => members.map(m => `${m.values.length} values, holds ${m.held()}, ${m.error?.stack ?? ''}`).join('; ')
  const failed = () => members.some(m => m.error)
  const seen = count => failed() || new Set(members.flatMap(m => m.values)).size === count
  await until(told, () => failed() || (first.held() === 4 && seen(200)))
  const second = await join()
  members.push(second)
  await until(told, () => failed() || (first.held() === 2 && second.held() === 2))
  for (let round = 0; round < 5 && second.values.length === 0; round++) { // the first may still have asked for what is the second's
    await produced(200)
    await until(told, () => seen(next))
  }
  check(second.values.length > 0, 'the second member reads nothing:', told())
  await second.leave()
  await until(told, () => failed() || first.held() === 4)
  await produced(100)
  await until(told, () => seen(next))
  check(!failed(), told())
  await first.leave()
  await produced(50)
  const third = await join()
  members = [third]
  await until(told, () => failed() || third.values.length >= 50)
  const want = Array.from({ length: 50 }, (_, n) => `${next - 50 + n}`)
  check(JSON.stringify(third.values.toSorted((a, b) => a - b)) === JSON.stringify(want), 'from the commit on came', third.values)
  await third.leave()
}

/** What a transaction's three parts must look like to a reader. read(committed, want) returns values. */
export async function checkTransaction (read) {
  for (const [committed, parts] of [[true, '02'], [false, '012']]) {
    const values = await read(committed, parts.length * 10)
    const counts = {}
    for (const v of values) counts[v] = (counts[v] ?? 0) + 1
    const want = Object.fromEntries([...parts].map(p => [p, 10]))
    check(JSON.stringify(counts) === JSON.stringify(want), committed ? 'read_committed' : 'read_uncommitted', 'reads', counts)
  }
}

/** cases maps a name, or its part before the first dash, to a function of the rest of the name. */
export async function main (cases) {
  for (const name of process.argv.slice(3)) {
    const outcome = { case: name, ok: true }
    const start = Date.now()
    try {
      let timer
      const expired = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`the case is not done after ${caseLimitMs} ms`)), caseLimitMs)
      })
      const [kind, ...rest] = name.split('-')
      await Promise.race([name in cases ? cases[name]() : cases[kind](rest.join('-')), expired])
      clearTimeout(timer)
    } catch (e) {
      outcome.ok = false
      outcome.why = inspect(e, { depth: 5 }).slice(0, 3000)
    }
    outcome.seconds = (Date.now() - start) / 1000
    console.log(JSON.stringify(outcome))
  }
  process.exit(0) // a case that failed may have left connections open
}
