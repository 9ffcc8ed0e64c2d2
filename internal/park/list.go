package park

// List holds the waiters of one resource, ordered by the offset they wait for.
// The mutex of its owner guards it and its links; waiters that it hands out are
// woken after that mutex is released, because no two locks are held together.
type List struct {
	head, tail *Link
	n          int
}

// Link is one waiter's membership of one List. It may be used again once it has
// left the list.
type Link struct {
	w          *Waiter
	at         int64
	prev, next *Link
	on         bool
}

// Len is the number of waiters on the list.
func (l *List) Len() int { return l.n }

// Add puts w on the list, waiting for at. Later waiters mostly wait for later
// offsets, so the place is searched from the end.
func (l *List) Add(k *Link, w *Waiter, at int64) {
	k.w, k.at, k.on = w, at, true
	after := l.tail
	for after != nil && after.at > at {
		after = after.prev
	}
	k.prev = after
	if after == nil {
		k.next, l.head = l.head, k
	} else {
		k.next, after.next = after.next, k
	}
	if k.next == nil {
		l.tail = k
	} else {
		k.next.prev = k
	}
	l.n++
}

// Remove takes k off the list; it is harmless when k has left already.
func (l *List) Remove(k *Link) {
	if !k.on {
		return
	}
	if k.prev == nil {
		l.head = k.next
	} else {
		k.prev.next = k.next
	}
	if k.next == nil {
		l.tail = k.prev
	} else {
		k.next.prev = k.prev
	}
	*k = Link{}
	l.n--
}

// TakeUpTo removes the waiters that wait for at most end and appends them to dst.
func (l *List) TakeUpTo(end int64, dst []*Waiter) []*Waiter {
	for l.head != nil && l.head.at <= end {
		k := l.head
		dst = append(dst, k.w)
		l.Remove(k)
	}
	return dst
}

// Credit tells every waiter that n more bytes have come, removes those that now
// have enough and appends them to dst.
func (l *List) Credit(n int64, dst []*Waiter) []*Waiter {
	for k := l.head; k != nil; {
		next := k.next
		if k.w.need.Add(-n) <= 0 {
			dst = append(dst, k.w)
			l.Remove(k)
		}
		k = next
	}
	return dst
}

// TakeAll empties the list into dst.
func (l *List) TakeAll(dst []*Waiter) []*Waiter {
	for l.head != nil {
		dst = append(dst, l.head.w)
		l.Remove(l.head)
	}
	return dst
}
