package network

// Handler serves requests. Both methods are called on an event loop or on a
// connection's serial executor, in the order in which the frames arrived.
type Handler interface {
	// Classify looks at the first bytes of a frame (key, version, correlation
	// id) as soon as they have arrived. It must not block. A frame that has to
	// wait for memory is classified again.
	Classify(head FrameHead) Class
	// Serve handles one request. It must lead to exactly one call of one of
	// Request's endings (Complete, NoResponse, Hangup), now or later, on any
	// goroutine. It must not block when the class said Inline and r.OnLoop().
	Serve(r *Request)
}

// FrameHead is what is known of a request before its body has arrived.
type FrameHead struct {
	Key, Version int16
	// SizeBytes is the frame's announced length.
	SizeBytes int
	Conn      *Conn
}

// Class is how a frame is to be served.
type Class struct {
	// Inline allows a frame of at most 64 KiB to be served on the loop.
	Inline bool
	// MaxBytes is the largest frame this API takes; a larger one closes the
	// connection. 0 is socket.request.max.bytes.
	MaxBytes int
	// Refuse closes the connection, with this reason in the log line.
	Refuse string
}

// Region is a part of a file, sent without passing through the program where the
// transport can. Release is called exactly once, after the last byte was sent or
// the connection has closed.
type Region interface {
	Len() int
	// Bytes is the mapped file for write calls only, nil where it cannot be
	// mapped: then ReadAt is used.
	Bytes() []byte
	// ReadAt reads from off bytes into the region.
	ReadAt(p []byte, off int64) (int, error)
	Release()
}

// Seg is one piece of a response: Bytes or Region.
type Seg struct {
	// Bytes is owned by the network once the response was handed over.
	Bytes  []byte
	Region Region
}

// Response is a whole frame, its 4-byte length included, in pieces that are sent
// in order.
type Response struct {
	Segs []Seg
	// Sent, unless nil, is called exactly once, after the last byte was sent or the
	// response was dropped. It must not block.
	Sent func()
}
