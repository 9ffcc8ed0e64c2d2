package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/barnabas-mq/barnabas/server/config"
)

// friendly are flags for what people change most, and the key that each sets.
var friendly = map[string]string{
	"listeners":  config.Listeners.Name,
	"advertise":  config.AdvertisedListeners.Name,
	"data":       config.LogDirs.Name,
	"partitions": config.NumPartitions.Name,
	"node-id":    config.NodeID.Name,
	"cluster-id": config.ClusterID.Name,
	"admin":      config.AdminListener.Name,
	"log-level":  config.LogLevel.Name,
	"log-format": config.LogFormat.Name,
}

// serveFlags are the flags of the broker; values are checked with everything
// else that is configured, so that one rule and one message serve all sources.
func serveFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "listeners", Aliases: []string{"port", "p"}, Usage: "where to listen: a `PORT`, HOST:PORT, or NAME://HOST:PORT and more of them with commas", DefaultText: "9092 on every interface"},
		&cli.StringFlag{Name: "advertise", Usage: "`ADDRESS` that clients are told: HOST, HOST:PORT, or NAME://HOST:PORT", DefaultText: "to each the one it connected to"},
		&cli.StringFlag{Name: "data", Aliases: []string{"d"}, Usage: "the data `FOLDER`", DefaultText: "./barnabas-data"},
		&cli.BoolFlag{Name: "ephemeral", Aliases: []string{"e"}, EnvVars: []string{"BARNABAS_EPHEMERAL"}, Usage: "keep the data in a temporary folder that is removed at the end", DisableDefaultText: true},
		&cli.BoolFlag{Name: "fsync", Usage: "flush to disk before every acknowledgement, together for all who wait", DisableDefaultText: true},
		&cli.StringFlag{Name: "partitions", Usage: "`NUMBER` of partitions of topics that are made without one", DefaultText: "1"},
		&cli.StringFlag{Name: "config", Aliases: []string{"c"}, EnvVars: []string{"BARNABAS_CONFIG"}, Usage: "read settings from `FILE`, for example Kafka's server.properties"},
		&cli.StringSliceFlag{Name: "set", Aliases: []string{"s"}, Usage: "any setting, as `KEY=VALUE`; may be repeated"},
		&cli.StringFlag{Name: "node-id", Usage: "`NUMBER` of this broker", DefaultText: "1"},
		&cli.StringFlag{Name: "cluster-id", Usage: "`ID` of a new cluster", DefaultText: "made at the first start"},
		&cli.StringFlag{Name: "admin", Usage: "`HOST:PORT` of /metrics, /healthz, /readyz and pprof; off for nowhere", DefaultText: "127.0.0.1:9080"},
		&cli.StringFlag{Name: "log-level", Usage: "`LEVEL` of the log: debug, info, warn or error", DefaultText: "info"},
		&cli.StringFlag{Name: "log-format", Usage: "`FORMAT` of the log: text or json", DefaultText: "text"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, EnvVars: []string{"BARNABAS_QUIET"}, Usage: "print no banner", DisableDefaultText: true},
	}
}

// settings lists what the flags set, in an order in which --set counts last.
func settings(c *cli.Context) ([]config.Setting, error) {
	var list []config.Setting
	for _, name := range sortedKeys(friendly) {
		if c.IsSet(name) {
			list = append(list, config.Setting{Key: friendly[name], Value: c.String(name), Where: "flag --" + name})
		}
	}
	if c.Bool("fsync") {
		list = append(list, config.Setting{Key: config.LogFlushIntervalMessages.Name, Value: "1", Where: "flag --fsync"})
	}
	for _, pair := range c.StringSlice("set") {
		key, value, ok := strings.Cut(pair, "=")
		if key = strings.TrimSpace(key); !ok || key == "" {
			return nil, usagef("--set %q: want KEY=VALUE, for example --set num.partitions=3", pair)
		}
		list = append(list, config.Setting{Key: key, Value: value, Where: "flag --set"})
	}
	return list, nil
}

// maxConfigFileBytes bounds the file of --config.
const maxConfigFileBytes = 1 << 20

// loadConfig merges flags, environment and file. A refusal is a usageError that
// lists every problem.
func loadConfig(c *cli.Context, environ []string, extra ...config.Setting) (*config.Static, []string, error) {
	in, fileErr, err := configInput(c, environ, extra...)
	if err != nil {
		return nil, nil, err
	}
	if fileErr != nil {
		return nil, nil, usagef("--config: %w", fileErr)
	}
	static, warnings, err := config.Load(in)
	if err != nil {
		return nil, warnings, usagef("these settings can't be used:\n  %s", strings.ReplaceAll(err.Error(), "\n", "\n  "))
	}
	return static, warnings, nil
}

// configInput collects what a start is configured with. With fileErr the file is
// left out; err is a wrong call.
func configInput(c *cli.Context, environ []string, extra ...config.Setting) (in config.Input, fileErr, err error) {
	list, err := settings(c)
	if err != nil {
		return config.Input{}, nil, err
	}
	in = config.Input{Flags: append(list, extra...), Environ: environ}
	if name := c.String("config"); name != "" {
		if in.FileText, fileErr = readConfigFile(name); fileErr == nil {
			in.File = name
		}
	}
	return in, fileErr, nil
}

func readConfigFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%s is a folder; want a file such as server.properties", name)
	case info.Size() > maxConfigFileBytes:
		return nil, fmt.Errorf("%s has %d bytes; at most %d are read", name, info.Size(), maxConfigFileBytes)
	}
	return os.ReadFile(name)
}
