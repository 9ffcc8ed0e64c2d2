package network

import (
	"encoding/binary"
	"fmt"
)

// frameHeadBytes is what is read before a frame is judged: its length, API key,
// version and correlation id. Every request has at least that much.
const (
	frameHeadBytes  = 12
	frameLenBytes   = 4
	requestBytesMin = frameHeadBytes - frameLenBytes
)

// assembler collects the frame that is not complete in one piece of input. Its
// memory follows the bytes that have arrived, never the announced length.
type assembler struct {
	head     [frameHeadBytes]byte
	headHave int
	// open is set from the end of the head to the end of the frame.
	open      bool
	frameSize int
	class     Class
	buf       []byte
	over      bool // buf was admitted beyond the budget
	// stash is input that was read and not taken when the reader was stopped.
	stash []byte
}

func (a *assembler) small() bool { return a.frameSize <= inlineFrameMax }

// consume cuts frames out of data and dispatches them. With paused, the caller
// keeps the bytes that it returns and stops reading until the connection is
// resumed.
func (c *Conn) consume(data []byte) (rest []byte, paused bool) {
	for {
		if c.hung.Load() || c.srv.draining.Load() {
			c.in.reset(c)
			return nil, false
		}
		ok := true
		switch {
		case c.in.open:
			data, ok = c.collect(data)
		case len(data) == 0:
			return nil, false
		case c.pauseWhenFull():
			return data, true
		default:
			data, ok = c.startFrame(data)
		}
		if !ok {
			return data, true
		}
		if c.in.open && len(data) == 0 && len(c.in.buf) < c.in.frameSize {
			return nil, false
		}
	}
}

// startFrame takes a frame that is complete in data in place, or opens the
// assembler for it. It is false when there is no memory for it now.
func (c *Conn) startFrame(data []byte) ([]byte, bool) {
	in := &c.in
	if in.headHave > 0 || len(data) < frameHeadBytes {
		n := copy(in.head[in.headHave:], data)
		data, in.headHave = data[n:], in.headHave+n
		switch {
		case in.headHave == frameHeadBytes:
			return data, !c.open(in.head[:]) || c.seed()
		case in.headHave >= frameLenBytes:
			c.checkLen(frameLen(in.head[:]), c.srv.limits.RequestMaxBytes)
		}
		return data, true
	}
	if !c.open(data) {
		return nil, true
	}
	total := frameLenBytes + in.frameSize
	if !in.small() || len(data) < total {
		return data[frameLenBytes:], true
	}
	in.open = false
	if !c.dispatchInPlace(data[frameLenBytes:total], in.class) {
		return data, false
	}
	return data[total:], true
}

// open judges a frame by its head.
func (c *Conn) open(head []byte) bool {
	in := &c.in
	size := frameLen(head)
	if !c.checkLen(size, c.srv.limits.RequestMaxBytes) {
		return false
	}
	in.frameSize = size
	in.class = c.classify(FrameHead{
		Key:       int16(binary.BigEndian.Uint16(head[4:])),
		Version:   int16(binary.BigEndian.Uint16(head[6:])),
		SizeBytes: size,
		Conn:      c,
	})
	if in.class.Refuse != "" {
		c.refuseNext(in.class.Refuse)
		return false
	}
	if in.class.MaxBytes > 0 && !c.checkLen(size, in.class.MaxBytes) {
		return false
	}
	in.open = true
	return true
}

// classify asks the handler; a panic costs the connection, not the broker.
func (c *Conn) classify(head FrameHead) (class Class) {
	defer func() {
		if p := recover(); p != nil {
			c.panicked("Classify", p)
			class = Class{Refuse: errPanic.Error()}
		}
	}()
	return c.srv.handler.Classify(head)
}

// seed moves the head's part of the frame from the torn head into the frame.
func (c *Conn) seed() bool {
	in := &c.in
	if !c.grow(requestBytesMin) {
		// The head is kept: resuming comes back here through collect.
		in.headHave = frameHeadBytes
		return false
	}
	in.buf = append(in.buf, in.head[frameLenBytes:]...)
	in.headHave = 0
	return true
}

// collect appends data to the open frame and dispatches it once it is whole. It
// is false when there is no memory for it now.
func (c *Conn) collect(data []byte) ([]byte, bool) {
	in := &c.in
	if in.headHave == frameHeadBytes && !c.seed() {
		return data, false
	}
	n := min(in.frameSize-len(in.buf), len(data))
	if n > 0 {
		if !c.grow(n) {
			return data, false
		}
		in.buf = append(in.buf, data[:n]...)
		data = data[n:]
	}
	c.frameDone()
	return data, true
}

// frameDone dispatches the collected frame if it is complete.
func (c *Conn) frameDone() {
	in := &c.in
	if len(in.buf) < in.frameSize {
		return
	}
	frame, over := in.buf, in.over
	in.buf, in.over, in.open = nil, false, false
	c.frameHeld.Store(0)
	c.dispatchOwned(frame, in.class, over)
}

// grow makes room for n more bytes of the open frame. It is false when the memory
// budget has none: the connection is then queued for it.
func (c *Conn) grow(n int) bool {
	in := &c.in
	have := len(in.buf)
	if have+n <= cap(in.buf) {
		return true
	}
	want := grownSize(have+n, in.frameSize)
	if !c.acquire(want) {
		return false
	}
	next := append(getBuffer(want), in.buf...)
	old := in.buf
	in.buf = next
	c.frameHeld.Store(int64(cap(next)))
	if cap(old) > 0 {
		oldBytes := cap(old)
		putBuffer(old)
		c.uncharge(oldBytes, false)
	}
	return true
}

// acquire takes want bytes of the budget for the open frame, from an earlier grant
// if there is one.
func (c *Conn) acquire(want int) bool {
	in := &c.in
	granted, over := c.takeGrant()
	in.over = in.over || over
	if granted >= want {
		c.uncharge(granted-want, false)
		return true
	}
	c.uncharge(granted, false)
	c.beginBudgetPause()
	ok, over := c.srv.budget.acquire(c, want, in.small(), in.over, true)
	if !ok {
		c.srv.watchFrames()
		return false
	}
	c.endBudgetPause()
	c.inBytes.Add(int64(want))
	in.over = in.over || over
	return true
}

// reset forgets a frame that will not be completed.
func (a *assembler) reset(c *Conn) {
	if cap(a.buf) > 0 {
		n, over := cap(a.buf), a.over
		putBuffer(a.buf)
		a.buf, a.over = nil, false
		c.uncharge(n, over)
	} else if a.over {
		a.over = false
		c.uncharge(0, true)
	}
	c.uncharge(len(a.stash), false)
	a.stash = nil
	a.open, a.headHave = false, 0
	c.frameHeld.Store(0)
}

func frameLen(b []byte) int { return int(int32(binary.BigEndian.Uint32(b))) }

// checkLen refuses a length before anything is allocated for it.
func (c *Conn) checkLen(size, maxBytes int) bool {
	switch {
	case size < requestBytesMin:
		c.refuseNext(fmt.Sprintf("invalid request length %d%s", size, guessPeer(size)))
	case size > maxBytes:
		c.refuseNext(fmt.Sprintf("request of %d bytes is larger than the limit of %d%s", size, maxBytes, guessPeer(size)))
	default:
		return true
	}
	return false
}

// guessPeer explains the usual mistake when a length is really text or TLS.
func guessPeer(size int) string {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], uint32(size))
	switch string(b[:]) {
	case "GET ", "POST", "PUT ", "HEAD", "OPTI":
		return ": the peer speaks HTTP"
	}
	if b[0] == 0x16 && b[1] == 3 {
		return ": the peer speaks TLS, this listener does not"
	}
	return ""
}
