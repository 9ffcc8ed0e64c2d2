package controller

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// update is one change of a request, "feature level kind".
func updating(version int16, updates ...string) *kmsg.UpdateFeaturesRequest {
	req := kmsg.NewPtrUpdateFeaturesRequest()
	req.Version = version
	for _, text := range updates {
		u := kmsg.NewUpdateFeaturesRequestFeatureUpdate()
		fmt.Sscan(text, &u.Feature, &u.MaxVersionLevel, &u.UpgradeType)
		u.Feature = strings.TrimPrefix(u.Feature, "-")
		req.FeatureUpdates = append(req.FeatureUpdates, u)
	}
	return req
}

func testFeatures() Config {
	cfg := testConfig()
	cfg.NodeID = 1
	cfg.Features = []FeatureRange{
		{MetadataVersion, 7, 33}, {"group.version", 0, 1}, {"share.version", 0, 0}, {"transaction.version", 0, 2},
	}
	return cfg
}

func (b *bench) update(req *kmsg.UpdateFeaturesRequest) string {
	b.t.Helper()
	d, err := b.m.Handle(b.img, req)
	if err != nil {
		b.t.Fatal(err)
	}
	b.img = b.img.Apply(d.Records...)
	resp := d.Response.(*kmsg.UpdateFeaturesResponse)
	if resp.ErrorCode == 0 {
		return fmt.Sprintf("%d rows", len(resp.Results))
	}
	return verdictText("refused", resp.ErrorCode, resp.ErrorMessage)
}

// TestUpdateFeatures has Apache Kafka's own answers.
func TestUpdateFeatures(t *testing.T) {
	b := newBench(t, testFeatures())
	b.register(1, 1)
	const failed = "refused: 95 The update failed for all features since the following feature had an error: "
	const downgrade = "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade."
	for _, c := range []struct{ update, want string }{
		{"transaction.version 2 1", "1 rows"},
		{"transaction.version 3 1", failed + "Invalid update version 3 for feature transaction.version. Local controller 1 only supports versions 0-2"},
		{"transaction.version 1 1", failed + "Invalid update version 1 for feature transaction.version. " + downgrade},
		{"transaction.version 1 2", "1 rows"},
		{"transaction.version 0 3", "1 rows"},
		{"transaction.version -1 1", failed + "Invalid update version -1 for feature transaction.version. A feature version cannot be less than 0."},
		{"transaction.version 2 0", failed + "Invalid update version 2 for feature transaction.version. The controller does not support the given upgrade type."},
		{"transaction.version 2 9", failed + "Invalid update version 2 for feature transaction.version. The controller does not support the given upgrade type."},
		{"nope 1 1", failed + "Invalid update version 1 for feature nope. Local controller 1 does not support this feature."},
		{"nope 0 2", failed + "Invalid update version 0 for feature nope. Feature nope not found."},
		{"- 1 1", failed + "Invalid update version 1 for feature . Local controller 1 does not support this feature."},
		{"share.version 1 1", failed + "Invalid update version 1 for feature share.version. Local controller 1 only supports versions 0-0"},
		{"metadata.version 33 1", "1 rows"},
		{"metadata.version 32 1", failed + "Invalid update version 32 for feature metadata.version. " + downgrade},
		{"metadata.version 32 2", failed + "Unsupported metadata.version downgrade from 33 to 32. Refusing to perform the requested downgrade because it might delete metadata information."},
		{"metadata.version 7 3", failed + "Unsupported metadata.version downgrade from 33 to 7. Unsafe metadata downgrade is not supported in this version."},
		{"metadata.version 6 3", failed + "Invalid update version 6 for feature metadata.version. Local controller 1 only supports versions 7-33"},
		{"metadata.version 34 1", failed + "Invalid update version 34 for feature metadata.version. Local controller 1 only supports versions 7-33"},
	} {
		req := updating(1, c.update)
		req.ValidateOnly = true
		if got := b.update(req); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.update, got, c.want)
		}
	}
	if got := b.img.Feature("transaction.version"); got != 2 {
		t.Fatalf("validation changed the level to %d", got)
	}
	if got := b.update(updating(2, "group.version 0 2", "transaction.version 1 2")); got != "0 rows" {
		t.Errorf("v2: %s", got)
	}
	if got := b.update(updating(1, "transaction.version 2 1", "nope 1 1")); !strings.HasPrefix(got, failed) || b.img.Feature("transaction.version") != 1 {
		t.Errorf("half of a refused update is made: %s", got)
	}
	v0 := updating(0, "transaction.version 0 2")
	v0.FeatureUpdates[0].AllowDowngrade = true
	if got := b.update(v0); got != failed+"Invalid update version 0 for feature transaction.version. "+downgrade {
		t.Errorf("v0: %s", got)
	}
	if got := b.update(updating(0, "transaction.version 2 1")); got != "1 rows" || b.img.Feature("transaction.version") != 2 {
		t.Errorf("v0: %s", got)
	}
	if got := b.update(updating(0)); got != "0 rows" {
		t.Errorf("no features: %s", got)
	}
}

// TestChosenLevelsStay: what an operator has lowered is not raised by a start, also
// not by one of a newer version; but metadata.version rises.
func TestChosenLevelsStay(t *testing.T) {
	cfg := testFeatures()
	b := newBench(t, cfg)
	b.register(1, 1)
	b.update(updating(1, "group.version 0 2", "transaction.version 1 2"))
	cfg.Features = append([]FeatureRange{{MetadataVersion, 7, 34}, {"streams.version", 0, 1}}, cfg.Features[1:]...)
	b.m.cfg = cfg
	b.register(1, 2)
	for name, want := range map[string]int16{MetadataVersion: 34, "group.version": 0, "transaction.version": 1, "streams.version": 1, "share.version": 0} {
		if got := b.img.Feature(name); got != want {
			t.Errorf("%s is at %d, want %d", name, got, want)
		}
	}
}
