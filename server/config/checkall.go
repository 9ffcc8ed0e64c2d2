package config

import (
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// checkAll looks at what no key can see alone, refuses by name what can't be
// honoured, and answers with the listeners to open.
func (l *loader) checkAll() []Listener {
	s := l.static.Snapshot()
	l.checkIdentity(s)
	l.checkRoles(s)
	l.checkFolders(s)
	l.checkRefused(s)
	l.checkLimits(s)
	l.checkConsumerGroups(s)
	return l.checkListeners(s)
}

// checkIdentity settles node.id and its older name, and the cluster's id.
func (l *loader) checkIdentity(s *Snapshot) {
	old, node := BrokerID.Get(s), NodeID.Get(s)
	_, nodeGiven := l.static.set[NodeID.Name]
	switch {
	case old < 0:
	case !nodeGiven:
		set := l.static.set[BrokerID.Name]
		l.static.values[NodeID.Name] = old
		l.static.set[NodeID.Name] = Setting{Key: NodeID.Name, Value: set.Value, Where: "from broker.id, " + set.Where}
	case old != node:
		l.refuseKey(BrokerID.Name, "node.id is %d; want the same number, or leave broker.id out", node)
	}
	if set, given := l.static.set[NodeID.Name]; given && old < 0 {
		l.static.values[BrokerID.Name] = node
		l.static.set[BrokerID.Name] = Setting{Key: BrokerID.Name, Value: set.Value, Where: "from node.id, " + set.Where}
	}
	if id, ok := ClusterID.Lookup(s); ok && !validClusterID(id) {
		l.refuseKey(ClusterID.Name, "want letters, digits, - and _, at most 36, such as %s", "4L6g3nShT-eMCtK--X86sw")
	}
}

// validClusterID takes Kafka's ids.
func validClusterID(id string) bool {
	return id != "" && len(id) <= 36 && strings.IndexFunc(id, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_')
	}) < 0
}

// checkRoles accepts what makes a node of its own and refuses what would have to
// join others.
func (l *loader) checkRoles(s *Snapshot) {
	roles := ProcessRoles.Get(s)
	if _, given := l.static.set[ProcessRoles.Name]; given {
		switch {
		case !slices.Contains(roles, "broker"):
			l.refuseKey(ProcessRoles.Name, "a node of controllers only can't be run yet; want broker,controller")
		case !slices.Contains(roles, "controller"):
			l.refuseKey(ProcessRoles.Name, "controllers on other nodes can't be used yet; want broker,controller")
		}
	}
	voters := ControllerQuorumVoters.Get(s)
	node := strconv.Itoa(int(NodeID.Get(l.static.Snapshot())))
	for _, voter := range voters {
		id, _, ok := strings.Cut(voter, "@")
		switch {
		case !ok || !digits(id):
			l.refuseKey(ControllerQuorumVoters.Name, "%q is not id@host:port", voter)
			return
		case len(voters) > 1:
			l.refuseKey(ControllerQuorumVoters.Name, "a cluster of %d nodes can't be made yet; want this node alone, or leave it out", len(voters))
			return
		case id != node:
			l.refuseKey(ControllerQuorumVoters.Name, "this node is %s and can't join another's cluster yet; want %s@host:port, or leave it out", node, node)
		}
	}
	if servers := ControllerQuorumBootstrapServers.Get(s); len(servers) > 1 {
		l.refuseKey(ControllerQuorumBootstrapServers.Name, "a cluster of %d nodes can't be made yet; want one address, or leave it out", len(servers))
	}
}

// checkFolders allows one data folder.
func (l *loader) checkFolders(s *Snapshot) {
	key := LogDir.Name
	folders, ok := LogDirs.Lookup(s)
	if ok {
		key = LogDirs.Name
	} else {
		folders = LogDir.Get(s)
	}
	switch {
	case len(folders) == 0:
		l.refuseKey(key, "want a folder")
		return
	case len(folders) > 1:
		l.refuseKey(key, "a second data folder (%s) can't be used yet; want one", folders[1])
	}
	if other, ok := l.static.set["metadata.log.dir"]; ok && other.Value != "" && filepath.Clean(other.Value) != filepath.Clean(folders[0]) {
		l.refuse(other, "metadata can't be kept apart from the data yet; want %s, or leave it out", folders[0])
	}
}

// javaClasses are keys that load Java code which people count on: leaving it out
// in silence would drop an access check or a rule.
var javaClasses = map[string]string{
	"authorizer.class.name":          "access rules can't be enforced yet",
	"alter.config.policy.class.name": "a Java class can't be loaded",
	"create.topic.policy.class.name": "a Java class can't be loaded",
	"client.quota.callback.class":    "a Java class can't be loaded",
	"config.providers":               "a Java class can't be loaded, so variables in values would stay as they are",
	"security.providers":             "a Java class can't be loaded",
}

// checkRefused refuses by name what would silently not happen.
func (l *loader) checkRefused(s *Snapshot) {
	for key, why := range javaClasses {
		if set, ok := l.static.set[key]; ok && strings.TrimSpace(set.Value) != "" {
			l.refuse(set, "%s; leave it out", why)
		}
	}
	if builder, ok := l.static.set["principal.builder.class"]; ok {
		if text, _ := Format(Broker("principal.builder.class").Default); strings.TrimSpace(builder.Value) != text {
			l.refuse(builder, "a Java class can't be loaded; leave it out")
		}
	}
	if v, _ := s.raw[Broker("remote.log.storage.system.enable").id].(bool); v {
		l.refuseKey("remote.log.storage.system.enable", "there is no tiered storage; want false")
	}
	for _, key := range []string{"metric.reporters", "kafka.metrics.reporters"} {
		set, ok := l.static.set[key]
		if text, _ := Format(Broker(key).Default); ok && strings.TrimSpace(set.Value) != text && set.Value != "" {
			l.warn("%s has no effect: Java classes can't be loaded; metrics are on the admin address under /metrics", set)
		}
	}
}

// checkLimits looks at numbers that must fit together.
func (l *loader) checkLimits(s *Snapshot) {
	for _, d := range []*Decl{LogRetentionMs.decl, LogRetentionMinutes.decl, LogRetentionHours.decl} {
		if n, text := number(s.raw[d.id]); text != "" && n == 0 {
			l.refuseKey(d.Name, "want -1 for no limit, or at least 1")
		}
	}
	if least, most := GroupMinSessionTimeoutMs.Get(s), GroupMaxSessionTimeoutMs.Get(s); least > most {
		key := GroupMinSessionTimeoutMs.Name
		if _, given := l.static.set[key]; !given {
			key = GroupMaxSessionTimeoutMs.Name
		}
		l.refuseKey(key, "the smallest session time-out (%d) is above the largest (%d)", least, most)
	}
	if queued, frame := QueuedMaxRequestBytes.Get(s), SocketRequestMaxBytes.Get(s); queued > 0 && queued < int64(frame) {
		l.refuseKey(QueuedMaxRequestBytes.Name, "want at least socket.request.max.bytes, which is %d, or set that lower as well: socket.request.max.bytes=%d", frame, queued)
	}
	if _, err := parsePerIP(MaxConnectionsPerIPOverrides.Get(s)); err != nil {
		l.refuseKey(MaxConnectionsPerIPOverrides.Name, "%v; want address:number,address:number", err)
	}
	if minLag, maxLag := LogCleanerMinCompactionLagMs.Get(s), LogCleanerMaxCompactionLagMs.Get(s); minLag > maxLag {
		l.refuseKey(LogCleanerMinCompactionLagMs.Name, "is above log.cleaner.max.compaction.lag.ms, which is %d", maxLag)
	}
	if size, threads := LogCleanerDedupeBufferSize.Get(s), int64(LogCleanerThreads.Get(s)); threads == 0 || size/threads <= 1<<20 {
		l.refuseKey(LogCleanerDedupeBufferSize.Name, "must be at least 1MB per cleaner thread, of which log.cleaner.threads asks for %d", threads)
	}
	if admin := AdminListener.Get(s); admin != "off" && admin != "" {
		_, port, err := net.SplitHostPort(admin)
		if n, bad := strconv.Atoi(port); err != nil || bad != nil || n < 0 || n > 65535 {
			l.refuseKey(AdminListener.Name, "want host:port, or off")
		}
	}
}
