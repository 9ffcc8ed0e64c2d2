package metadata

// minEndpointBytes is two lengths and two numbers.
const minEndpointBytes = 4

func (rec *RegisterBrokerRecord) encode(w *writer) {
	w.int(int64(rec.BrokerID))
	w.id(rec.IncarnationID)
	w.str(rec.Rack)
	w.bool(rec.Fenced)
	w.uint(uint64(len(rec.Endpoints)))
	for _, e := range rec.Endpoints {
		w.endpoint(e)
	}
}

func (rec *RegisterBrokerRecord) decode(r *reader, _ uint64) {
	rec.BrokerID = r.int32()
	rec.IncarnationID = r.id()
	rec.Rack = r.str()
	rec.Fenced = r.bool()
	for range r.count(minEndpointBytes) {
		rec.Endpoints = append(rec.Endpoints, r.endpoint())
	}
}

func (rec *UnregisterBrokerRecord) encode(w *writer)           { w.int(int64(rec.BrokerID)) }
func (rec *UnregisterBrokerRecord) decode(r *reader, _ uint64) { rec.BrokerID = r.int32() }

func (rec *BrokerChangeRecord) encode(w *writer) {
	w.int(int64(rec.BrokerID))
	w.optBool(rec.Fenced)
	w.optBool(rec.InShutdown)
}

func (rec *BrokerChangeRecord) decode(r *reader, _ uint64) {
	rec.BrokerID = r.int32()
	rec.Fenced = r.optBool()
	rec.InShutdown = r.optBool()
}

func (rec *TopicRecord) encode(w *writer) {
	w.str(rec.Name)
	w.id(rec.ID)
	w.bool(rec.Internal)
}

func (rec *TopicRecord) decode(r *reader, _ uint64) {
	rec.Name = r.str()
	rec.ID = r.id()
	rec.Internal = r.bool()
}

func (rec *PartitionRecord) encode(w *writer) {
	w.id(rec.TopicID)
	w.int(int64(rec.Index))
	w.ids(rec.Replicas)
	w.ids(rec.ISR)
	w.ids(rec.ELR)
	w.ids(rec.LastKnownELR)
	w.ids(rec.AddingReplicas)
	w.ids(rec.RemovingReplicas)
	w.int(int64(rec.Leader))
	w.int(int64(rec.LeaderEpoch))
	w.int(int64(rec.PartitionEpoch))
}

func (rec *PartitionRecord) decode(r *reader, _ uint64) {
	rec.TopicID = r.id()
	rec.Index = r.int32()
	rec.Replicas = r.ids()
	rec.ISR = r.ids()
	rec.ELR = r.ids()
	rec.LastKnownELR = r.ids()
	rec.AddingReplicas = r.ids()
	rec.RemovingReplicas = r.ids()
	rec.Leader = r.int32()
	rec.LeaderEpoch = r.int32()
	rec.PartitionEpoch = r.int32()
}

func (rec *PartitionChangeRecord) encode(w *writer) {
	w.id(rec.TopicID)
	w.int(int64(rec.Index))
	w.bool(rec.Leader != nil)
	if rec.Leader != nil {
		w.int(int64(*rec.Leader))
	}
	w.ids(rec.Replicas)
	w.ids(rec.ISR)
	w.ids(rec.ELR)
	w.ids(rec.LastKnownELR)
	w.ids(rec.AddingReplicas)
	w.ids(rec.RemovingReplicas)
}

func (rec *PartitionChangeRecord) decode(r *reader, _ uint64) {
	rec.TopicID = r.id()
	rec.Index = r.int32()
	if r.bool() {
		rec.Leader = new(r.int32())
	}
	rec.Replicas = r.ids()
	rec.ISR = r.ids()
	rec.ELR = r.ids()
	rec.LastKnownELR = r.ids()
	rec.AddingReplicas = r.ids()
	rec.RemovingReplicas = r.ids()
}

func (rec *RemoveTopicRecord) encode(w *writer)           { w.id(rec.ID) }
func (rec *RemoveTopicRecord) decode(r *reader, _ uint64) { rec.ID = r.id() }

func (rec *ConfigRecord) encode(w *writer) {
	w.int(int64(rec.Resource.Type))
	w.str(rec.Resource.Name)
	w.str(rec.Name)
	w.optStr(rec.Value)
}

func (rec *ConfigRecord) decode(r *reader, _ uint64) {
	rec.Resource = r.resource()
	rec.Name = r.str()
	rec.Value = r.optStr()
}

func (r *reader) resource() ConfigResource {
	return ConfigResource{Type: r.int8("resource type"), Name: r.str()}
}

func (rec *ProducerIDsRecord) encode(w *writer) {
	w.int(int64(rec.BrokerID))
	w.int(rec.BrokerEpoch)
	w.int(rec.Next)
}

func (rec *ProducerIDsRecord) decode(r *reader, _ uint64) {
	rec.BrokerID = r.int32()
	rec.BrokerEpoch = r.int()
	rec.Next = r.int()
}

func (rec *FeatureLevelRecord) encode(w *writer) {
	w.str(rec.Name)
	w.int(int64(rec.Level))
}

func (rec *FeatureLevelRecord) decode(r *reader, _ uint64) {
	rec.Name = r.str()
	rec.Level = r.int16()
}

// The three states of a part of a quota entity.
const (
	partMissing = iota
	partDefault
	partNamed
)

func (w *writer) quotaName(n QuotaName) {
	switch {
	case !n.Given:
		w.uint(partMissing)
	case n.Default:
		w.uint(partDefault)
	default:
		w.uint(partNamed)
		w.str(n.Name)
	}
}

func (r *reader) quotaName() QuotaName {
	switch r.uint() {
	case partMissing:
	case partDefault:
		return QuotaName{Given: true, Default: true}
	case partNamed:
		return QuotaName{Given: true, Name: r.str()}
	default:
		r.fail("bad part of a quota entity")
	}
	return QuotaName{}
}

func (rec *ClientQuotaRecord) encode(w *writer) {
	w.quotaName(rec.Entity.User)
	w.quotaName(rec.Entity.ClientID)
	w.quotaName(rec.Entity.IP)
	w.str(rec.Key)
	w.bool(rec.Value != nil)
	if rec.Value != nil {
		w.float(*rec.Value)
	}
}

func (rec *ClientQuotaRecord) decode(r *reader, _ uint64) {
	rec.Entity = QuotaEntity{User: r.quotaName(), ClientID: r.quotaName(), IP: r.quotaName()}
	rec.Key = r.str()
	if r.bool() {
		rec.Value = new(r.float())
	}
}

func (rec *ScramCredentialRecord) encode(w *writer) {
	w.str(rec.User)
	w.int(int64(rec.Mechanism))
	w.bool(rec.Credential != nil)
	if c := rec.Credential; c != nil {
		w.str(string(c.Salt))
		w.str(string(c.StoredKey))
		w.str(string(c.ServerKey))
		w.int(int64(c.Iterations))
	}
}

func (rec *ScramCredentialRecord) decode(r *reader, _ uint64) {
	rec.User = r.str()
	rec.Mechanism = r.int8("mechanism")
	if r.bool() {
		rec.Credential = &ScramCredential{
			Salt: []byte(r.str()), StoredKey: []byte(r.str()), ServerKey: []byte(r.str()), Iterations: r.int32(),
		}
	}
}

func (*NoOpRecord) encode(*writer)         {}
func (*NoOpRecord) decode(*reader, uint64) {}
