package wire

import (
	"errors"
	"slices"
	"testing"
)

func TestRoundTrip(t *testing.T) {
	var w Writer
	w.Int8(-1)
	w.ShortString("short")
	w.OptString(nil)
	w.Strings([]string{"a", ""})
	w.Int32s([]int32{7, -7})
	w.TagInt64(5)
	w.TagInt64(0)
	r := NewReader(w.Buf)
	if r.Int8() != -1 || r.ShortString() != "short" || r.OptString() != nil {
		t.Error("the scalars differ")
	}
	if got := r.Strings(); !slices.Equal(got, []string{"a", ""}) {
		t.Errorf("strings %q", got)
	}
	if got := r.Int32s(); !slices.Equal(got, []int32{7, -7}) {
		t.Errorf("int32s %v", got)
	}
	if r.TagInt64() != 5 || r.TagInt64() != 0 || r.Err() != nil {
		t.Errorf("the tagged fields differ: %v", r.Err())
	}
}

// TestHostileLengths announces more than there is; nothing may be allocated for it.
func TestHostileLengths(t *testing.T) {
	long := []byte{0xff, 0xff, 0xff, 0xff, 0x0f, 1}
	for name, read := range map[string]func(*Reader){
		"string":  func(r *Reader) { _ = r.String() },
		"strings": func(r *Reader) { r.Strings() },
		"int32s":  func(r *Reader) { r.Int32s() },
		"bytes":   func(r *Reader) { r.Bytes() },
		"tags":    func(r *Reader) { r.Tags(nil) },
	} {
		r := NewReader(long)
		read(r)
		if !errors.Is(r.Err(), errShort) {
			t.Errorf("%s: %v", name, r.Err())
		}
		if r.Int64() != 0 {
			t.Errorf("%s: something is left to read after the error", name)
		}
	}
}
