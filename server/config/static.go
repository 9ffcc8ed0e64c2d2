package config

// Setting is one value that the broker was started with.
type Setting struct {
	Key, Value string
	// Where names the flag, the variable or the file and line.
	Where string
}

// Static is what a broker was started with: flags over environment over file. It
// never changes.
type Static struct {
	// set is what was given, values the same parsed, by key.
	set       map[string]Setting
	values    map[string]any
	listeners []Listener
}

// Defaults is a broker that was started with nothing.
func Defaults() *Static {
	return &Static{
		set: map[string]Setting{}, values: map[string]any{},
		listeners: []Listener{{Name: "PLAINTEXT", Port: 9092, Protocol: "PLAINTEXT"}},
	}
}

// Snapshot is the configuration before anything is set while the broker runs.
func (s *Static) Snapshot() *Snapshot { return NewSnapshot(s, nil, nil) }

// Listeners are the addresses to listen on, without the controllers'. The slice
// is shared.
func (s *Static) Listeners() []Listener { return s.listeners }

// Given is the setting of a key; false when it was not given.
func (s *Static) Given(key string) (Setting, bool) {
	set, ok := s.set[key]
	return set, ok
}

// setting is Given for messages: a key that was not given has its default.
func (s *Static) setting(key string) Setting {
	if set, ok := s.set[key]; ok {
		return set
	}
	text, _ := Format(Broker(key).Default)
	return Setting{Key: key, Value: text, Where: "default"}
}
