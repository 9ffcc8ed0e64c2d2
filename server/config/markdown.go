package config

import (
	"bytes"
	"fmt"
	"strings"
)

const docsHead = `# Configuration

Generated from the declarations in server/config by ` + "`make docs`" + `; don't edit it.

Barnabas takes Kafka's own keys. A value can be given in these places; the first that has it counts:

1. a topic's own configuration, for the keys that name a topic's key (` + "`barnabas topic alter`, `barnabas config set`" + `, or any Kafka admin client),
2. this broker's, then all brokers' configuration set while it runs, for keys that are not read-only,
3. a flag: ` + "`--set num.partitions=3`" + `,
4. an environment variable: ` + "`KAFKA_NUM_PARTITIONS=3`" + `, as the apache/kafka image reads them: ` + "`_`" + ` stands for a dot, ` + "`__`" + ` for ` + "`_`" + `, ` + "`___`" + ` for a dash.
   ` + "`BARNABAS_LOG_LEVEL=debug`" + ` sets the keys that begin with ` + "`barnabas.`" + `, and ` + "`CLUSTER_ID`" + ` the cluster's id. Variables merge with the defaults, and empty ones count as not set,
5. the file of ` + "`--config server.properties`" + `,
6. the default.

A value that a key does not take is refused by name, with where it came from, and the broker does not start (exit code 2).
A key that nobody knows is a warning with the nearest one that is known.
`

// Markdown is docs/config.md.
func Markdown() []byte {
	var b bytes.Buffer
	b.WriteString(docsHead)
	for _, family := range []string{familyBroker, familyLog, familyNetwork, familyGroup, familyTxn, familyOurs} {
		fmt.Fprintf(&b, "\n## %s\n", family)
		for _, d := range brokerKeys.list {
			if d.family == family && !d.NoEffect {
				writeKey(&b, d)
			}
		}
	}
	b.WriteString("\n## A topic's keys that stand on their own\n")
	for _, d := range topicKeys.sorted() {
		if d.Broker == "" && !d.NoEffect {
			writeKey(&b, d)
		}
	}
	b.WriteString("\n## Known, and without effect here\n\nThese keys of Kafka are accepted, checked and reported, so that files and tools work unchanged. " +
		"They belong to what Barnabas does in another way, or doesn't do yet.\nWhere leaving a setting out in silence would be dangerous, the table says that it is refused.\n")
	for _, family := range []string{familyBroker, familyGroup, familyTxn, familyCleaner, familyShare, familyStreams, familyTiered, familySecurity} {
		var rows strings.Builder
		for _, d := range brokerKeys.sorted() {
			if d.family == family && d.NoEffect && !d.Internal {
				fmt.Fprintf(&rows, "| `%s` | %s | %s |\n", d.Name, code(showDefault(d)), strings.ReplaceAll(d.Doc, "|", `\|`))
			}
		}
		if rows.Len() > 0 {
			fmt.Fprintf(&b, "\n### %s\n\n| key | default | what it is |\n|---|---|---|\n%s", family, rows.String())
		}
	}
	return b.Bytes()
}

func writeKey(b *bytes.Buffer, d *Decl) {
	fmt.Fprintf(b, "\n### %s\n\n%s\n\n", d.Name, d.Doc)
	fmt.Fprintf(b, "- %s, default %s", strings.ToLower(d.Type.String()), code(showDefault(d)))
	if d.Check.allowed != "" {
		fmt.Fprintf(b, "; %s", d.Allowed())
	}
	b.WriteString("\n")
	if Broker(d.Name) == d {
		fmt.Fprintf(b, "- %s; %s importance\n", d.Scope, d.Importance)
		fmt.Fprintf(b, "- environment: `%s`\n", envName(d.Name))
	}
	if d.Topic != "" {
		fmt.Fprintf(b, "- a topic's own: `%s`\n", d.Topic)
	}
}

const ownPrefix = "barnabas."

// envName is the variable that sets a key.
func envName(key string) string {
	name := strings.NewReplacer("_", "__", "-", "___", ".", "_").Replace(key)
	if !strings.HasPrefix(key, ownPrefix) {
		name = "KAFKA_" + name
	}
	return strings.ToUpper(name)
}

func showDefault(d *Decl) string {
	text, ok := Format(d.Default)
	if !ok {
		return "none"
	}
	return text
}

func code(text string) string {
	switch text {
	case "none":
		return text
	case "":
		return "empty"
	}
	return "`" + text + "`"
}
