package controller

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/protocol"
)

// MetadataVersion is the feature whose level says which records the metadata log
// may have.
const MetadataVersion = "metadata.version"

// FeatureRange is what this version serves of a feature (KIP-584).
type FeatureRange struct {
	Name     string
	Min, Max int16
}

// Kafka's numbers of the kinds of a feature's update (KIP-778).
const (
	upgradeOnly     = 1
	downgradeSafe   = 2
	downgradeUnsafe = 3
)

// firstLevels finalizes what nobody has finalized, each at the highest level that
// is served. A level that an operator has chosen stays, but that of
// metadata.version always rises: nobody but this broker reads the log.
func (m *Machine) firstLevels(img *metadata.Image) (records []metadata.Record) {
	set := img.Features()
	for _, f := range m.cfg.Features {
		level, chosen := set[f.Name]
		if f.Max > level && (!chosen || f.Name == MetadataVersion) {
			records = append(records, &metadata.FeatureLevelRecord{Name: f.Name, Level: f.Max})
		}
	}
	return records
}

// updateFeatures makes all changes or none.
func (m *Machine) updateFeatures(img *metadata.Image, req *kmsg.UpdateFeaturesRequest) Decision {
	resp := req.ResponseKind().(*kmsg.UpdateFeaturesResponse)
	d := Decision{Response: resp}
	for i := range req.FeatureUpdates {
		u := &req.FeatureUpdates[i]
		level, err := m.updateFeature(img, u, req.Version)
		if err != nil {
			resp.ErrorCode, resp.ErrorMessage = protocol.Code(err), kmsg.StringPtr(
				"The update failed for all features since the following feature had an error: "+*protocol.Message(err))
			resp.Results = nil
			return Decision{Response: resp}
		}
		if req.Version <= lastWithResults {
			row := kmsg.NewUpdateFeaturesResponseResult()
			row.Feature, row.ErrorMessage = u.Feature, kmsg.StringPtr("NONE")
			resp.Results = append(resp.Results, row)
		}
		if level != img.Feature(u.Feature) {
			d.Records = append(d.Records, &metadata.FeatureLevelRecord{Name: u.Feature, Level: level})
		}
	}
	if req.ValidateOnly {
		d.Records = nil
	}
	return d
}

// lastWithResults is the last version whose response has a row for each feature.
const lastWithResults = 1

func (m *Machine) updateFeature(img *metadata.Image, u *kmsg.UpdateFeaturesRequestFeatureUpdate, version int16) (level int16, err error) {
	refuse := func(format string, args ...any) (int16, error) {
		args = append([]any{u.MaxVersionLevel, u.Feature}, args...)
		return 0, protocol.Errorf(kerr.InvalidUpdateVersion, "Invalid update version %d for feature %s. "+format, args...)
	}
	kind := u.UpgradeType
	if version == 0 {
		kind = upgradeOnly // as Kafka, whatever AllowDowngrade says
	}
	at := slices.IndexFunc(m.cfg.Features, func(f FeatureRange) bool { return f.Name == u.Feature })
	switch {
	case kind != upgradeOnly && kind != downgradeSafe && kind != downgradeUnsafe:
		return refuse("The controller does not support the given upgrade type.")
	case u.MaxVersionLevel < 0:
		return refuse("A feature version cannot be less than 0.")
	case at < 0 && u.MaxVersionLevel == 0:
		return refuse("Feature %s not found.", u.Feature)
	case at < 0:
		return refuse("Local controller %d does not support this feature.", m.cfg.NodeID)
	}
	f := m.cfg.Features[at]
	current := img.Feature(f.Name)
	switch {
	case u.MaxVersionLevel < f.Min || u.MaxVersionLevel > f.Max:
		return refuse("Local controller %d only supports versions %d-%d", m.cfg.NodeID, f.Min, f.Max)
	case u.MaxVersionLevel < current && kind == upgradeOnly:
		return refuse("Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade.")
	case u.MaxVersionLevel < current && f.Name == MetadataVersion:
		return 0, metadataDowngrade(current, u.MaxVersionLevel, kind)
	}
	return u.MaxVersionLevel, nil
}

func metadataDowngrade(from, to int16, kind int8) error {
	why := "Refusing to perform the requested downgrade because it might delete metadata information."
	if kind == downgradeUnsafe {
		why = "Unsafe metadata downgrade is not supported in this version."
	}
	return protocol.Errorf(kerr.InvalidUpdateVersion, "Unsupported %s downgrade from %d to %d. %s", MetadataVersion, from, to, why)
}
