package storage

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
)

// MetadataEndFile says how far the metadata log reached, so that a store that
// lost its end is not taken for a whole one.
const MetadataEndFile = "metadata-end"

const metadataEndFormat = "version: 0\nindex: %020d\n"

// EncodeMetadataEnd is the content of a metadata-end file: always of the same
// length, so that one write replaces it in place.
func EncodeMetadataEnd(index uint64) []byte {
	text := fmt.Appendf(nil, metadataEndFormat, index)
	return fmt.Appendf(text, "crc: %08x\n", crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli)))
}

// ParseMetadataEnd reads the index of a metadata-end file; 0 for one that a power
// failure left empty.
func ParseMetadataEnd(b []byte) (index uint64, err error) {
	if len(bytes.Trim(b, "\x00")) == 0 {
		return 0, nil
	}
	_, err = fmt.Sscanf(string(b), metadataEndFormat, &index)
	if err != nil || !bytes.Equal(b, EncodeMetadataEnd(index)) {
		return 0, fmt.Errorf("%w: %s", ErrCorrupt, MetadataEndFile)
	}
	return index, nil
}

func dumpMetadataEnd(w io.Writer, b []byte) error {
	index, err := ParseMetadataEnd(b)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "index: %d\n", index)
	return err
}
