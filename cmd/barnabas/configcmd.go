package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/urfave/cli/v2"

	"github.com/barnabas-mq/barnabas/server/config"
)

func configCommand() *cli.Command {
	return &cli.Command{
		Name: "config", Usage: "read and change settings of topics and of the running broker",
		Subcommands: []*cli.Command{
			{
				Name: "get", Usage: "show settings", ArgsUsage: "[KEY...]", Action: configGet,
				Description: "Shows the settings that differ from the defaults; --all shows every one.",
				Flags: clientFlags(resourceFlags(
					&cli.BoolFlag{Name: "all", Usage: "show defaults too"})...),
			},
			{
				Name: "set", Usage: "change settings without a restart", ArgsUsage: "KEY=VALUE...", Action: configSet,
				Description: "KEY= with nothing behind it sets the empty value; --unset returns a key to its default.",
				Flags: clientFlags(resourceFlags(
					&cli.StringSliceFlag{Name: "unset", Usage: "return `KEY` to its default; may be repeated"})...),
			},
		},
	}
}

func resourceFlags(own ...cli.Flag) []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "topic", Aliases: []string{"t"}, Usage: "settings of `TOPIC` instead of the broker's"},
		&cli.StringFlag{Name: "node", Usage: "settings of the broker with this `ID`; default the one that answers; 'all' is the default of all brokers"},
	}, own...)
}

// settingView is one setting.
type settingView struct {
	Key    string  `json:"key"`
	Value  *string `json:"value"`
	Source string  `json:"source"`
}

func configGet(c *cli.Context) error {
	if c.IsSet("topic") && c.IsSet("node") {
		return usagef("config get: --topic or --node, not both")
	}
	return withAdmin(c, func(ctx context.Context, adm *kadm.Client) error {
		rc, err := describeResource(ctx, c, adm)
		if err != nil {
			return err
		}
		wanted := map[string]bool{}
		for _, k := range c.Args().Slice() {
			wanted[k] = true
		}
		rows := []settingView{}
		t := newTable("KEY", "VALUE", "SOURCE")
		for _, cfg := range rc.Configs {
			if c.Args().Present() && !wanted[cfg.Key] {
				continue
			}
			delete(wanted, cfg.Key)
			if c.NArg() == 0 && !c.Bool("all") && cfg.Source == kmsg.ConfigSourceDefaultConfig {
				continue
			}
			source := strings.ToLower(strings.TrimSuffix(cfg.Source.String(), "_CONFIG"))
			rows = append(rows, settingView{cfg.Key, cfg.Value, source})
			value := cfg.MaybeValue()
			if cfg.Sensitive {
				value = hiddenText(cfg.Key, c.String("topic") == "")
			}
			t.add(cfg.Key, value, source)
		}
		for _, k := range sortedKeys(wanted) {
			return fmt.Errorf("config get: there is no setting %q here; --all lists them", k)
		}
		return show(c, rows, func(w io.Writer) error {
			if len(rows) == 0 {
				_, err := fmt.Fprintln(w, "Everything is at its default. --all shows it.")
				return err
			}
			return t.print(w)
		})
	})
}

// hiddenText stands for a value that the broker does not tell. It tells none of a
// broker's key that it does not know, which may be a slip that a start only warned of.
func hiddenText(key string, ofBroker bool) string {
	if !ofBroker || config.Broker(key) != nil || strings.HasPrefix(key, "listener.name.") {
		return "(hidden)"
	}
	if near := config.Nearest(key, config.BrokerNames()); near != "" {
		return "(not a known setting; did you mean " + near + "?)"
	}
	return "(hidden; not a known setting)"
}

func describeResource(ctx context.Context, c *cli.Context, adm *kadm.Client) (kadm.ResourceConfig, error) {
	verb := "config " + c.Command.Name
	var all kadm.ResourceConfigs
	var err error
	if topic := c.String("topic"); topic != "" {
		all, err = adm.DescribeTopicConfigs(ctx, topic)
	} else {
		nodes, nodeErr := nodeIDs(ctx, c, adm)
		if nodeErr != nil {
			return kadm.ResourceConfig{}, nodeErr
		}
		all, err = adm.DescribeBrokerConfigs(ctx, nodes...)
	}
	if err != nil {
		return kadm.ResourceConfig{}, fmt.Errorf("%s: %w", verb, err)
	}
	if len(all) == 0 {
		return kadm.ResourceConfig{}, fmt.Errorf("%s: the broker answered nothing", verb)
	}
	if all[0].Err != nil {
		return kadm.ResourceConfig{}, fmt.Errorf("%s: %s", verb, describeFailure(resourceName(c, all[0].Name), all[0].Err, all[0].ErrMessage))
	}
	return all[0], nil
}

// resourceName is what a broker calls NAME, for people: a broker's is its bare number.
func resourceName(c *cli.Context, name string) string {
	switch {
	case c.String("topic") != "":
		return name
	case name == "":
		return "all brokers"
	}
	return "broker " + name
}

// nodeIDs is what --node means: one id, or none for all brokers.
func nodeIDs(ctx context.Context, c *cli.Context, adm *kadm.Client) ([]int32, error) {
	switch v := c.String("node"); v {
	case "all":
		return nil, nil
	case "":
		m, err := adm.BrokerMetadata(ctx)
		if err != nil || len(m.Brokers) == 0 {
			return nil, fmt.Errorf("config: ask for the brokers: %w", err)
		}
		return []int32{m.Brokers[0].NodeID}, nil
	default:
		n, err := strconv.ParseInt(v, 10, 32)
		if err != nil || n < 0 {
			return nil, usagef("--node %q: want a broker's number or all", v)
		}
		return []int32{int32(n)}, brokerExists(ctx, adm, int32(n))
	}
}

// brokerExists says which brokers there are when this is none of them.
func brokerExists(ctx context.Context, adm *kadm.Client, node int32) error {
	m, err := adm.BrokerMetadata(ctx)
	if err != nil {
		return fmt.Errorf("config: ask for the brokers: %w", err)
	}
	var known []int32
	for _, b := range m.Brokers {
		known = append(known, b.NodeID)
	}
	if !slices.Contains(known, node) {
		return fmt.Errorf("--node %d: there is no such broker; there are %s", node, ids(known))
	}
	return nil
}

// knownKeys refuses changes of keys that the broker does not list: it takes
// unknown ones for later versions, as Kafka does, and a slip would go unseen.
func knownKeys(ctx context.Context, c *cli.Context, adm *kadm.Client, changes []kadm.AlterConfig) error {
	rc, err := describeResource(ctx, c, adm)
	if err != nil {
		return err
	}
	listed := rc.Configs
	if c.String("node") == "all" { // lists only what is set
		m, err := adm.BrokerMetadata(ctx)
		if err != nil || len(m.Brokers) == 0 {
			return fmt.Errorf("config: ask for the brokers: %w", err)
		}
		all, err := adm.DescribeBrokerConfigs(ctx, m.Brokers[0].NodeID)
		if err != nil || len(all) == 0 {
			return fmt.Errorf("config: ask for the settings: %w", err)
		}
		listed = append(listed, all[0].Configs...)
	}
	var failed []string
	for _, change := range changes {
		if why := unknownKey(change.Name, listed); why != "" {
			failed = append(failed, why)
		}
	}
	return failures("config set", failed)
}

// unknownKey says why a key is not taken, "" for one that is listed.
func unknownKey(key string, listed []kadm.Config) string {
	names := make([]string, len(listed))
	for i, cfg := range listed {
		names[i] = cfg.Key
	}
	if slices.Contains(names, key) || strings.HasPrefix(key, "listener.name.") {
		return ""
	}
	if near := config.Nearest(key, names); near != "" {
		return fmt.Sprintf("%s: there is no such setting here; did you mean %s?", key, near)
	}
	return key + ": there is no such setting here; `barnabas config get --all` lists them"
}

// afterRestart is what to do about a setting that a running broker can't change.
func afterRestart(message string) string {
	if !strings.HasPrefix(message, "Cannot update these configs dynamically") {
		return ""
	}
	return "; set it where the broker is started, in server.properties or with --set KEY=VALUE, and restart it"
}

func configSet(c *cli.Context) error {
	if c.IsSet("topic") && c.IsSet("node") {
		return usagef("config set: --topic or --node, not both")
	}
	set, err := keyValues("config set", c.Args().Slice())
	if err != nil {
		return err
	}
	changes := configChanges(set, c.StringSlice("unset"))
	if len(changes) == 0 {
		return usagef("config set: name KEY=VALUE or --unset KEY")
	}
	return withAdmin(c, func(ctx context.Context, adm *kadm.Client) error {
		var responses kadm.AlterConfigsResponses
		if err := knownKeys(ctx, c, adm, changes); err != nil {
			return err
		}
		var err error
		if topic := c.String("topic"); topic != "" {
			responses, err = adm.AlterTopicConfigs(ctx, changes, topic)
		} else {
			nodes, nodeErr := nodeIDs(ctx, c, adm)
			if nodeErr != nil {
				return nodeErr
			}
			responses, err = adm.AlterBrokerConfigs(ctx, changes, nodes...)
		}
		if err != nil {
			return fmt.Errorf("config set: %w", err)
		}
		var failed []string
		for _, r := range responses {
			if r.Err != nil {
				failed = append(failed, describeFailure(resourceName(c, r.Name), r.Err, r.ErrMessage)+afterRestart(r.ErrMessage))
			}
		}
		if err := failures("config set", failed); err != nil {
			return err
		}
		return show(c, map[string]any{"changed": len(changes)}, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "Changed %s.\n", plural(len(changes), "setting"))
			return err
		})
	})
}
