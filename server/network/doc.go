// Package network accepts connections and turns each into an ordered pipeline of
// requests and responses.
//
// Two transports stand under the same Conn: gnet event loops, and any
// net.Listener. Nothing outside knows which one a connection came from.
//
// Requests hold no more than queued.max.request.bytes, one frame, and what their
// handlers charge. While connections wait for that memory, a frame that is being
// received must fill its buffer at the rate of a whole one in ten seconds and may
// fall two seconds behind (ten, when the buffer has no more than 64 KiB), or its
// connection is closed: one buffer is kept from others by a slow or silent client
// for 14 seconds at most. While nobody waits a frame may take as long as it likes,
// and the time in which a frame itself waits for memory, or the broker has not come to
// read what has arrived of it, does not count.
//
// Answers that are not sent hold as much again; above that slow readers that hold more
// than others do are closed. A connection whose own answers, those that wait for earlier
// ones included, hold more than 1 MiB is served no further request until they hold less;
// once half of the bound is such waiting answers, nothing is served behind a request that
// is not answered yet.
// The garbage collector may let the heap grow to twice of all that.
package network
