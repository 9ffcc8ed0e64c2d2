package assignor

import (
	"cmp"
	"slices"
)

// levels hands out, of the subscribers of one topic, the least loaded for giving
// and the most loaded for taking. The members of a level take turns; when all had
// theirs the level has moved by one and takes in those that are on it.
//
// It looks at the loads only where a level takes in members that had no turn, so
// it must be told of every give and take by asking for it.
type levels struct {
	loads []int
	// members are sorted by load, then by index.
	members []int

	// least is the level below which nobody is: the members before lowEnd are on
	// it, and lowNext is whose turn it is.
	low             int
	lowEnd, lowNext int
	// high is the same from the other end: the members from highStart to highEnd
	// are on it, those after highEnd have nothing to take.
	high                         int
	highStart, highEnd, highNext int
}

func (s *subscribers) len() int { return len(s.byLoad) }

// byLoad is a topic's subscribers by load, then by index. It is not for changing.
func (d *mixedDivision) byLoad(t *mixedTopic) []int {
	s := t.subscribers
	if s.asOf != d.moves {
		slices.SortFunc(s.byLoad, func(a, b int) int { return cmp.Or(cmp.Compare(d.loads[a], d.loads[b]), cmp.Compare(a, b)) })
		s.asOf = d.moves
	}
	return s.byLoad
}

// spread is how far the loads of a topic's subscribers are apart.
func (d *mixedDivision) spread(t *mixedTopic) int {
	members := d.byLoad(t)
	return d.loads[members[len(members)-1]] - d.loads[members[0]]
}

func (d *mixedDivision) levels(t *mixedTopic) *levels {
	members := slices.Clone(d.byLoad(t))
	n := len(members)
	return &levels{
		loads: d.loads, members: members,
		low:  d.loads[members[0]] - 1,
		high: d.loads[members[n-1]] + 1, highStart: n, highEnd: n, highNext: n - 1,
	}
}

func (l *levels) balanced() bool { return l.high-l.low <= 1 }

// least is the member to give one partition to.
func (l *levels) least() int {
	if l.lowNext >= l.lowEnd {
		l.low++
		for l.lowEnd < len(l.members) && l.loads[l.members[l.lowEnd]] == l.low {
			l.lowEnd++
		}
		l.lowNext = 0
	}
	m := l.members[l.lowNext]
	l.lowNext++
	return m
}

// most is the member to take one partition from; ok is false when there is none.
func (l *levels) most() (member int, ok bool) {
	if l.highNext < l.highStart {
		if l.highEnd <= l.highStart && l.highStart > 0 {
			l.high = l.loads[l.members[l.highStart-1]]
		} else {
			l.high--
		}
		for l.highStart > 0 && l.loads[l.members[l.highStart-1]] == l.high {
			l.highStart--
		}
		l.highNext = l.highEnd - 1
	}
	if l.highNext < 0 {
		return 0, false
	}
	m := l.members[l.highNext]
	l.highNext--
	return m, true
}

// dropMost says that nothing can be taken from the member that most returned.
func (l *levels) dropMost() {
	i, last := l.highNext+1, l.highEnd-1
	l.members[i], l.members[last] = l.members[last], l.members[i]
	l.highEnd--
}
