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

// section is a heading of docs/config.md and the keys below it.
type section struct {
	title string
	keys  []*Decl
}

const (
	topicSection    = "A topic's keys that stand on their own"
	noEffectSection = "Known, and without effect here"
)

// sections are the keys that have an effect.
func sections() []section {
	var list []section
	for _, family := range []string{familyBroker, familyLog, familyNetwork, familyGroup, familyTxn, familyOurs} {
		s := section{title: family}
		for _, d := range brokerKeys.list {
			if d.family == family && !d.NoEffect {
				s.keys = append(s.keys, d)
			}
		}
		list = append(list, s)
	}
	own := section{title: topicSection}
	for _, d := range topicKeys.sorted() {
		if d.Broker == "" && !d.NoEffect {
			own.keys = append(own.keys, d)
		}
	}
	return append(list, own)
}

// writeContents links every section and key: there are too many to scroll through.
func writeContents(b *bytes.Buffer, list []section) {
	b.WriteString("\n## Contents\n\n")
	for _, s := range list {
		links := make([]string, len(s.keys))
		for i, d := range s.keys {
			links[i] = link(d.Name)
		}
		fmt.Fprintf(b, "- **%s**: %s\n", link(s.title), strings.Join(links, ", "))
	}
	fmt.Fprintf(b, "- **%s**\n", link(noEffectSection))
}

// link is a link to a heading of the same page.
func link(heading string) string { return "[" + heading + "](#" + anchor(heading) + ")" }

// anchor is the name that GitHub gives to a heading: letters in lower case, digits,
// _ and -, a dash for each blank, and nothing of the rest.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			return r
		}
		return -1
	}, strings.ToLower(heading))
}

// Markdown is docs/config.md.
func Markdown() []byte {
	var b bytes.Buffer
	b.WriteString(docsHead)
	list := sections()
	writeContents(&b, list)
	for _, s := range list {
		fmt.Fprintf(&b, "\n## %s\n", s.title)
		for _, d := range s.keys {
			writeKey(&b, d)
		}
	}
	b.WriteString("\n## " + noEffectSection + "\n\nThese keys of Kafka are accepted, checked and reported, so that files and tools work unchanged. " +
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
