package metadata

import "sync/atomic"

// Store holds the newest published image for readers that take no lock. It is a
// Publisher: where it stands among the others says what a reader may rely on.
type Store struct{ current atomic.Pointer[Image] }

// NewStore starts with img.
func NewStore(img *Image) *Store {
	s := &Store{}
	s.current.Store(img)
	return s
}

// Current is the newest image.
func (s *Store) Current() *Image { return s.current.Load() }

// OnMetadata implements Publisher.
func (s *Store) OnMetadata(_ *Delta, img *Image) { s.current.Store(img) }
