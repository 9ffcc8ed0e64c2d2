package config

// checkConsumerGroups refuses limits of consumer groups that leave no room: Kafka's
// broker does not start with them either.
func (l *loader) checkConsumerGroups(s *Snapshot) {
	for _, r := range []struct{ value, least, most *Key[int32] }{
		{GroupConsumerSessionTimeoutMs, GroupConsumerMinSessionTimeoutMs, GroupConsumerMaxSessionTimeoutMs},
		{GroupConsumerHeartbeatIntervalMs, GroupConsumerMinHeartbeatIntervalMs, GroupConsumerMaxHeartbeatIntervalMs},
		{GroupConsumerAssignmentIntervalMs, GroupConsumerMinAssignmentIntervalMs, GroupConsumerMaxAssignmentIntervalMs},
	} {
		least, most := r.least.Get(s), r.most.Get(s)
		value := r.value.Get(s)
		if _, given := l.static.set[r.value.Name]; !given && r.value == GroupConsumerAssignmentIntervalMs {
			value = max(value, least) // Kafka's default lies higher
		}
		switch {
		case least > most:
			l.refuseKey(r.most.Name, "%s is %d; want at least that", r.least.Name, least)
		case value < least:
			l.refuseKey(r.value.Name, "%s is %d; want at least that", r.least.Name, least)
		case value > most:
			l.refuseKey(r.value.Name, "%s is %d; want at most that", r.most.Name, most)
		}
	}
	if session := GroupConsumerSessionTimeoutMs.Get(s); GroupConsumerHeartbeatIntervalMs.Get(s) >= session {
		l.refuseKey(GroupConsumerHeartbeatIntervalMs.Name, "%s is %d; want less than that", GroupConsumerSessionTimeoutMs.Name, session)
	}
}
