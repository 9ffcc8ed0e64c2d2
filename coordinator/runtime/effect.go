package runtime

// reply puts what came of an effect to the machine; from any goroutine. It is
// never refused: only as many can come as the machine has asked for.
func (in *instance[E, R, A]) reply(e E) {
	in.s.put(job[E, A]{kind: jobReply, event: func(uint64) E { return e }, owner: in})
}

// replied lets the machine decide about a reply. Nobody could be told that the
// log takes no appends, so the reply waits until it does.
func (in *instance[E, R, A]) replied(j job[E, A]) {
	e := j.event(0)
	o := &in.s.rt.o
	if o.MayWrite(e) && in.log.Writable() != nil {
		o.Clock.AfterFunc(unwritableRetry, func() { in.s.put(j) })
		return
	}
	in.handle(e)
}
