package replica

// hotBytes is about how much of a partition's end counts as hot: written by this
// process so recently that the page cache has it.
const hotBytes = 8 << 20

// hot remembers from where on a partition's records are surely in the page
// cache, so that a fetch of them may be served on an event loop. It keeps two
// generations of at most half of hotBytes each.
type hot struct {
	older, newer int64
	newerBytes   int64
}

// reset says that nothing of the log was written lately.
func (h *hot) reset(logEnd int64) { *h = hot{older: logEnd, newer: logEnd} }

// appended notes sizeBytes that end at logEnd.
func (h *hot) appended(logEnd, sizeBytes int64) {
	h.newerBytes += sizeBytes
	if h.newerBytes >= hotBytes/2 {
		h.older, h.newer, h.newerBytes = h.newer, logEnd, 0
	}
}

// from is the first offset that is hot.
func (h *hot) from() int64 { return h.older }
