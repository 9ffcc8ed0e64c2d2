package metadata

import (
	"cmp"
	"maps"
	"slices"
)

// QuotaName is one part of a quota entity.
type QuotaName struct {
	// Given says that the entity has this part at all.
	Given bool
	// Default stands for everybody who has no quota of his own; Name is "" then.
	Default bool
	Name    string
}

// QuotaEntity is whom a quota is for: a user, a client id, both, or an address.
type QuotaEntity struct{ User, ClientID, IP QuotaName }

// ClientQuota is everything that is set for one entity.
type ClientQuota struct {
	Entity QuotaEntity
	// Values are the quotas by Kafka's name of the key.
	Values map[string]float64
}

// ClientQuota is what is set for an entity; nil when nothing is.
func (img *Image) ClientQuota(e QuotaEntity) map[string]float64 {
	values, _ := img.quotas.get(e)
	return values
}

// ClientQuotas lists all quotas sorted by entity; the caller owns the slice.
func (img *Image) ClientQuotas() []ClientQuota {
	out := make([]ClientQuota, 0, img.quotas.size)
	for e, values := range img.quotas.all {
		out = append(out, ClientQuota{Entity: e, Values: values})
	}
	slices.SortFunc(out, func(a, b ClientQuota) int {
		return cmp.Or(
			compareNames(a.Entity.User, b.Entity.User),
			compareNames(a.Entity.ClientID, b.Entity.ClientID),
			compareNames(a.Entity.IP, b.Entity.IP),
		)
	})
	return out
}

// compareNames sorts a part that is missing before the default before names.
func compareNames(a, b QuotaName) int {
	rank := func(n QuotaName) int {
		switch {
		case !n.Given:
			return 0
		case n.Default:
			return 1
		}
		return 2
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name))
}

func (e *edit) setQuota(rec *ClientQuotaRecord) {
	old, _ := e.quotas.now.get(rec.Entity)
	values := make(map[string]float64, len(old)+1)
	maps.Copy(values, old)
	if rec.Value == nil {
		delete(values, rec.Key)
	} else {
		values[rec.Key] = *rec.Value
	}
	if len(values) == 0 {
		e.quotas.remove(rec.Entity)
	} else {
		e.quotas.set(rec.Entity, values)
	}
}
