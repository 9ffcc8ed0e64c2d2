package batch

import "encoding/binary"

// minOldSize is the smallest length field of a message of format v0: CRC, magic,
// attributes, key length and value length.
const minOldSize = 14

// Next splits the first batch off b. It looks at the length and the magic byte
// only: Validate looks at the rest. When b ends early it returns ErrTruncated;
// when no batch can start here ErrCorrupt, or ErrOldMagic for a message of
// format v0 or v1. An empty b is ErrTruncated too: ask for len(b) > 0 first.
func Next(b []byte) (v View, rest []byte, err error) {
	size, err := PeekSize(b)
	if err != nil {
		return nil, b, err
	}
	if size > len(b) {
		return nil, b, ErrTruncated
	}
	return View(b[:size:size]), b[size:], nil
}

// PeekSize is the size of the batch that starts with b, of which the first
// HeaderSize bytes are enough (fewer give ErrTruncated). It can be larger than
// what b holds: a reader must hold it against the bytes that are really there
// before it allocates.
func PeekSize(b []byte) (sizeBytes int, err error) {
	if len(b) < LogOverhead {
		return 0, ErrTruncated
	}
	length := int32(binary.BigEndian.Uint32(b[posLength:]))
	if length < minOldSize {
		return 0, ErrCorrupt
	}
	if len(b) <= posMagic {
		return 0, ErrTruncated
	}
	switch magic := int8(b[posMagic]); {
	case magic < 0 || magic > 2:
		return 0, ErrCorrupt
	case magic < 2:
		return 0, ErrOldMagic
	case length < HeaderSize-LogOverhead:
		return 0, ErrCorrupt
	}
	return LogOverhead + int(length), nil
}
