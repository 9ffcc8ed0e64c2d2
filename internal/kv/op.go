package kv

// Op is one change of an atomic Apply.
type Op struct {
	Key, Value []byte
	// Delete removes Key; with End set it removes every key in [Key, End).
	Delete bool
	End    []byte
}
