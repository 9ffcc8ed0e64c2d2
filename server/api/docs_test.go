package api

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/protocol"
)

var update = flag.Bool("update", false, "write docs/apis.md anew")

const docsFile = "../../docs/apis.md"

// apiNotes says in a line what each of Kafka's APIs is for, and what is
// particular about it here. TestTable wants one for every served API.
var apiNotes = map[int16]string{
	0:  "Writes record batches; before v3 message sets of format v0 and v1, which are stored as batches.",
	1:  "Reads record batches, before v4 message sets of format v0 and v1 made of them: long polls, incremental sessions (KIP-227), topic ids (KIP-516).",
	2:  "Offsets by timestamp, of the ends of a partition, and of its largest timestamp.",
	3:  "Brokers, topics and leaders. Topics are created by asking for them; their rows have an error until they are there.",
	8:  "Commits consumer offsets.",
	9:  "Reads committed offsets.",
	10: "Which broker coordinates a group or a transactional id.",
	11: "Joins a classic consumer group.",
	12: "Keeps a member of a classic group alive.",
	13: "Leaves a group, or removes members from it.",
	14: "Hands out the group leader's assignment.",
	15: "Describes classic groups.",
	16: "Lists groups.",
	17: "Names the SASL mechanisms: none, with ILLEGAL_SASL_STATE, as there is no SASL listener.",
	18: "Which APIs, versions and features this broker has. Answered whatever its version.",
	19: "Creates topics, and answers once they serve Produce and Fetch.",
	20: "Deletes topics by name or id.",
	21: "Moves a partition's log start offset.",
	22: "Gives an idempotent producer its id.",
	23: "Where a leader epoch ended, for truncation (KIP-101, KIP-320).",
	24: "Adds partitions to a transaction.",
	25: "Adds consumer offsets to a transaction.",
	26: "Ends a transaction.",
	27: "Writes the markers that end a transaction.",
	28: "Commits offsets within a transaction.",
	29: "Lists ACLs: SECURITY_DISABLED, as there is no authorizer.", 30: "Creates ACLs: SECURITY_DISABLED.", 31: "Deletes ACLs: SECURITY_DISABLED.",
	32: "Describes configurations, with sources, synonyms and documentation.",
	33: "Replaces configurations.",
	34: "Moves replicas between log folders, of which there is one.",
	35: "Sizes of the partitions in the data folder.",
	36: "One step of a SASL login: ILLEGAL_SASL_STATE, as there is no SASL listener.",
	37: "Adds partitions to topics.",
	38: "Creates delegation tokens: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED on a PLAINTEXT listener.",
	39: "Renews delegation tokens: likewise.", 40: "Expires delegation tokens: likewise.", 41: "Lists delegation tokens: likewise.",
	42: "Deletes empty groups.",
	43: "Elects preferred leaders, or others where none is in sync (KIP-460).",
	44: "Changes configurations one by one.",
	45: "Moves replicas between brokers (KIP-455).", 46: "Lists the moves under way.",
	47: "Deletes committed offsets.",
	48: "Describes the quotas of users, client ids and addresses.", 49: "Alters quotas; they are stored, not yet enforced.",
	50: "Describes SCRAM credentials.", 51: "Alters SCRAM credentials; they are stored for listeners to come.",
	55: "Describes the metadata quorum: one voter, which leads.",
	57: "Finalizes feature levels (KIP-584).",
	60: "Brokers and controller, for admin clients.",
	61: "Describes the idempotent producers of a partition.",
	64: "Unregisters a broker; one that runs serves no partition until it starts again.",
	65: "Describes transactions.", 66: "Lists transactions.",
	68: "The one request of the KIP-848 group protocol.", 69: "Describes KIP-848 groups.",
	71: "Which metrics a client shall push (KIP-714). Listed by ApiVersions while there is a subscription.",
	72: "Takes metrics that clients push; they are on the metrics page. Listed likewise.",
	74: "Lists the resources that configurations are set on.",
	75: "Describes partitions page by page (KIP-966).",
	76: "Keeps a member of a share group alive (KIP-932).", 77: "Describes share groups.",
	78: "Acquires records for a share group.", 79: "Acknowledges records of a share group.",
	80: "Adds a voter to the metadata quorum: refused as by Kafka with configured voters (kraft.version 0).",
	81: "Removes a voter from the metadata quorum: likewise.",
	88: "Keeps a member of a streams group alive (KIP-1071).", 89: "Describes streams groups.",
	94: "Unregisters a controller: never the only one, which is active.",
	90: "Describes share group offsets.", 91: "Alters share group offsets.", 92: "Deletes share group offsets.",
}

func apiDocs() string {
	rows := map[int16]API{}
	for _, row := range Table {
		rows[row.Key] = row
	}
	var served, missing strings.Builder
	for key := int16(0); key <= kmsg.MaxKey; key++ {
		note, documented := apiNotes[key]
		row, ok := rows[key]
		switch {
		case ok:
			fmt.Fprintf(&served, "| %d | %s | %d-%d | %s |\n", key, row.Name, row.Min, row.Max, note)
		case documented:
			fmt.Fprintf(&missing, "| %d | %s | %s |\n", key, protocol.Name(key), note)
		}
	}
	return "# Kafka APIs\n\n" +
		"Made from the broker's API table by `go test ./server/api -run TestDocs -update`; do not edit.\n\n" +
		"A request for anything else closes the connection after one log line that names the peer, the API and the\n" +
		"version, as Apache Kafka does. Only ApiVersions is answered in every version.\n\n" +
		"## Served\n\n| key | API | versions | |\n|---|---|---|---|\n" + served.String() +
		"\n## Not served yet\n\nThese are not listed by ApiVersions, so that clients do not try them.\n\n" +
		"| key | API | |\n|---|---|---|\n" + missing.String()
}

func TestDocs(t *testing.T) {
	want := apiDocs()
	if *update {
		if err := os.WriteFile(docsFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(docsFile)
	if err != nil || string(got) != want {
		t.Errorf("%s is stale (%v); run go test ./server/api -run TestDocs -update", docsFile, err)
	}
}
