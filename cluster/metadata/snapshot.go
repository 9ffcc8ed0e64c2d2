package metadata

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
)

const (
	snapshotFormat = 1
	// firstWithQuotas is the format from which on quotas and SCRAM credentials
	// stand at the end.
	firstWithQuotas = 1
	crcBytes        = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Encode is the whole image in bytes, equal for equal images on every node: the
// sections of a snapshot stand in a fixed order, sorted inside, before a CRC-32C.
// ControllerID is not part of it.
func (img *Image) Encode() []byte {
	w := writer{buf: []byte{snapshotFormat}}
	w.int(img.Offset)
	w.str(img.ClusterID)
	w.int(img.nextProducerID)
	img.encodeBrokers(&w)
	img.encodeTopics(&w)
	img.encodeConfigs(&w)
	w.uint(uint64(len(img.features)))
	for _, name := range slices.Sorted(maps.Keys(img.features)) {
		w.str(name)
		w.int(int64(img.features[name]))
	}
	img.encodeRemoved(&w)
	img.encodeQuotas(&w)
	img.encodeScram(&w)
	return binary.BigEndian.AppendUint32(w.buf, crc32.Checksum(w.buf, castagnoli))
}

// Hash names the image's content: two nodes at the same offset agree on it.
func (img *Image) Hash() string {
	sum := sha256.Sum256(img.Encode())
	return hex.EncodeToString(sum[:16])
}

func (img *Image) encodeBrokers(w *writer) {
	w.uint(uint64(len(img.brokers)))
	for _, b := range img.Brokers() {
		w.int(b.Epoch)
		w.bool(b.InShutdown)
		appendRecord(w, &RegisterBrokerRecord{
			BrokerID: b.ID, IncarnationID: b.IncarnationID, Rack: b.Rack, Fenced: b.Fenced, Endpoints: b.Endpoints,
		})
	}
}

func (img *Image) encodeTopics(w *writer) {
	w.uint(uint64(img.TopicCount()))
	for t := range img.Topics() {
		appendRecord(w, &TopicRecord{Name: t.Name, ID: t.ID, Internal: t.Internal})
		w.uint(uint64(len(t.Partitions)))
		for _, p := range t.Partitions {
			appendRecord(w, &PartitionRecord{TopicID: t.ID, Partition: *p})
		}
	}
}

func (img *Image) encodeConfigs(w *writer) {
	resources := img.ConfigResources()
	w.uint(uint64(len(resources)))
	for _, r := range resources {
		config := img.Config(r)
		w.int(int64(r.Type))
		w.str(r.Name)
		w.uint(uint64(len(config)))
		for _, name := range slices.Sorted(maps.Keys(config)) {
			w.str(name)
			w.str(config[name])
		}
	}
}

func (img *Image) encodeRemoved(w *writer) {
	all := make([]RemovedTopic, 0, img.removed.size)
	for _, t := range img.removed.all {
		all = append(all, t)
	}
	slices.SortFunc(all, compareRemoved)
	w.uint(uint64(len(all)))
	for _, t := range all {
		w.str(t.Name)
		w.id(t.ID)
		w.int(t.Offset)
		w.ids(t.Holders)
	}
}

func (img *Image) encodeQuotas(w *writer) {
	quotas := img.ClientQuotas()
	records := 0
	for _, q := range quotas {
		records += len(q.Values)
	}
	w.uint(uint64(records))
	for _, q := range quotas {
		for _, key := range slices.Sorted(maps.Keys(q.Values)) {
			appendRecord(w, &ClientQuotaRecord{Entity: q.Entity, Key: key, Value: new(q.Values[key])})
		}
	}
}

func (img *Image) encodeScram(w *writer) {
	keys := img.ScramCredentials()
	w.uint(uint64(len(keys)))
	for _, key := range keys {
		credential, _ := img.ScramCredential(key.User, key.Mechanism)
		appendRecord(w, &ScramCredentialRecord{User: key.User, Mechanism: key.Mechanism, Credential: credential})
	}
}

// Decode is the reverse of Encode. Bytes that were cut, changed or written by a
// newer version are an error.
func Decode(data []byte) (*Image, error) {
	if len(data) < crcBytes+1 {
		return nil, fmt.Errorf("metadata snapshot: %w: %d bytes", errCorrupt, len(data))
	}
	body, sum := data[:len(data)-crcBytes], binary.BigEndian.Uint32(data[len(data)-crcBytes:])
	if crc32.Checksum(body, castagnoli) != sum {
		return nil, fmt.Errorf("metadata snapshot: %w: checksum differs", errCorrupt)
	}
	format, r, err := formatReader(body, snapshotFormat)
	if err != nil {
		return nil, fmt.Errorf("metadata snapshot: %w", err)
	}
	img, err := decodeImage(r, format)
	if err == nil && len(r.buf) > 0 {
		r.fail("bytes after the snapshot")
	}
	if r.err != nil {
		err = r.err
	}
	if err != nil {
		return nil, fmt.Errorf("metadata snapshot: %w", err)
	}
	return img, nil
}

func decodeImage(r *reader, format byte) (*Image, error) {
	offset := r.int()
	e := newEdit(New(r.str()), offset)
	e.out.nextProducerID = r.int()
	if err := decodeBrokers(r, e); err != nil {
		return nil, err
	}
	if err := decodeTopics(r, e); err != nil {
		return nil, err
	}
	for range r.count(3) {
		resource := r.resource()
		for range r.count(2) {
			e.setConfig(&ConfigRecord{Resource: resource, Name: r.str(), Value: new(r.str())})
		}
	}
	for range r.count(2) {
		e.setFeature(&FeatureLevelRecord{Name: r.str(), Level: r.int16()})
	}
	for range r.count(len(TopicID{}) + 3) {
		t := RemovedTopic{Name: r.str(), ID: r.id(), Offset: r.int(), Holders: r.ids()}
		e.removed.set(t.ID, t)
	}
	if format >= firstWithQuotas {
		decodeQuotas(r, e)
		decodeScram(r, e)
	}
	if r.err != nil {
		return nil, r.err
	}
	img, _ := e.finish()
	return img, nil
}

func decodeQuotas(r *reader, e *edit) {
	for range r.count(minRecordBytes) {
		rec, ok := readRecord(r).(*ClientQuotaRecord)
		if !ok {
			r.fail("no quota where one should be")
			return
		}
		e.setQuota(rec)
	}
}

func decodeScram(r *reader, e *edit) {
	for range r.count(minRecordBytes) {
		rec, ok := readRecord(r).(*ScramCredentialRecord)
		if !ok {
			r.fail("no SCRAM credential where one should be")
			return
		}
		e.setScram(rec)
	}
}

func decodeBrokers(r *reader, e *edit) error {
	for range r.count(minRecordBytes + 2) {
		epoch, inShutdown := r.int(), r.bool()
		rec, ok := readRecord(r).(*RegisterBrokerRecord)
		if !ok {
			r.fail("no broker where one should be")
			return r.err
		}
		e.registerBroker(rec)
		b := e.out.brokers[rec.BrokerID]
		b.Epoch, b.InShutdown = epoch, inShutdown
	}
	return r.err
}

func decodeTopics(r *reader, e *edit) error {
	for range r.count(minRecordBytes + 1) {
		topic, ok := readRecord(r).(*TopicRecord)
		if !ok {
			r.fail("no topic where one should be")
			return r.err
		}
		if err := e.addTopic(topic); err != nil {
			return err
		}
		for range r.count(minRecordBytes) {
			partition, ok := readRecord(r).(*PartitionRecord)
			if !ok {
				r.fail("no partition where one should be")
				return r.err
			}
			if err := e.addPartition(partition); err != nil {
				return err
			}
		}
	}
	return r.err
}
