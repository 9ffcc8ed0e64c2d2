package network

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/memnet"
)

// recorder keeps the frames that it was given.
type recorder struct{ frames [][]byte }

func (*recorder) Classify(h FrameHead) Class {
	class := Class{Inline: h.Key%2 == 0}
	if h.Key == 5 {
		class.MaxBytes = 100
	}
	if h.Key == 7 {
		class.Refuse = "seven"
	}
	return class
}

func (rec *recorder) Serve(r *Request) {
	rec.frames = append(rec.frames, bytes.Clone(r.Frame))
	r.NoResponse()
}

// nullLink is a connection whose reader is the test.
type nullLink struct{}

func (nullLink) blocking() bool              { return true }
func (nullLink) behind() bool                { return false }
func (nullLink) sendsMapped() bool           { return false }
func (nullLink) drain(bool)                  {}
func (nullLink) write([][]byte) (int, error) { return 0, nil }
func (nullLink) arm() error                  { return nil }
func (nullLink) resume()                     {}
func (nullLink) close()                      {}

// splitFrames is the plain reading of a stream: whole frames, and whether it has
// to be refused after them.
func splitFrames(data []byte, maxBytes int) (frames [][]byte, refused bool) {
	for len(data) >= frameLenBytes {
		size := frameLen(data)
		if size < requestBytesMin || size > maxBytes {
			return frames, true
		}
		if len(data) < frameHeadBytes {
			return frames, false
		}
		key := binary.BigEndian.Uint16(data[4:])
		if key == 7 || (key == 5 && size > 100) {
			return frames, true
		}
		if len(data) < frameLenBytes+size {
			return frames, false
		}
		frames = append(frames, data[frameLenBytes:frameLenBytes+size])
		data = data[frameLenBytes+size:]
	}
	return frames, false
}

// FuzzReader cuts a stream anywhere and compares the frames with splitFrames.
func FuzzReader(f *testing.F) {
	frame := func(key byte, n int) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(n))
		return append(b, append([]byte{0, key}, bytes.Repeat([]byte{key}, n-2)...)...)
	}
	f.Add([]byte{}, []byte{1})
	f.Add(frame(1, 8), []byte{1})
	f.Add(append(frame(2, 20), frame(3, 3000)...), []byte{3, 1, 200})
	f.Add(append(frame(5, 100), frame(5, 101)...), []byte{0})
	f.Add(append(frame(2, 70_000), frame(7, 10)...), []byte{255, 7})
	f.Add([]byte("\x00\x00\x00\x08\x00\x01\x00\x02\x00"), []byte{4})
	f.Add([]byte("GET / HTTP/1.1\r\n"), []byte{2, 100})
	f.Fuzz(func(t *testing.T, data, cuts []byte) {
		const maxBytes = 100_000
		rec := &recorder{}
		s := New(Options{Handler: rec, Limits: Limits{RequestMaxBytes: maxBytes}})
		c := &Conn{srv: s, listener: &listener{}, remote: memnet.Addr("x:1"), local: memnet.Addr("y:1"), link: nullLink{}}
		for i, rest := 0, data; len(rest) > 0; i++ {
			n := len(rest)
			if len(cuts) > 0 {
				if k := int(cuts[i%len(cuts)]); k < 250 {
					n = min(n, k+1)
				} else {
					n = min(n, k*300)
				}
			}
			if left, paused := c.consume(bytes.Clone(rest[:n])); paused || len(left) > 0 {
				t.Fatalf("paused with %d bytes left", len(left))
			}
			if held := s.budget.usedBytes.Load(); held > int64(4*len(data)+2*smallBufferMin) {
				t.Fatalf("%d bytes are held for %d", held, len(data))
			}
			rest = rest[n:]
		}
		want, refused := splitFrames(data, maxBytes)
		if len(rec.frames) != len(want) || c.hung.Load() != refused {
			t.Fatalf("%d frames (refused %v), want %d (%v)", len(rec.frames), c.hung.Load(), len(want), refused)
		}
		for i := range want {
			if !bytes.Equal(rec.frames[i], want[i]) {
				t.Fatalf("frame %d differs", i)
			}
		}
		c.in.reset(c)
		if held := s.budget.usedBytes.Load(); held != 0 {
			t.Fatalf("%d bytes are still held", held)
		}
	})
}

func TestSizeClasses(t *testing.T) {
	for _, n := range []int{inlineFrameMax + 1, 80 << 10, 100_000, 1 << 20, 1<<20 + 100, 5 << 20, pooledMax - 1, pooledMax} {
		class, capBytes := sizeClass(n)
		if capBytes < n || capBytes > n+n/4 || class >= len(bufferPools) {
			t.Errorf("sizeClass(%d) = %d, %d", n, class, capBytes)
		}
		if again, same := sizeClass(capBytes); again != class || same != capBytes {
			t.Errorf("class %d of %d is %d of %d for its own size", class, capBytes, again, same)
		}
		b := getBuffer(n)
		if cap(b) != capBytes || len(b) != 0 {
			t.Errorf("getBuffer(%d) has %d of %d bytes", n, len(b), cap(b))
		}
		putBuffer(append(b, 1))
	}
}
