package api

import (
	"log/slog"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/server/config"
)

// rootLogger is the only logger of the broker, as the resource type
// BROKER_LOGGER knows it (KIP-412).
const rootLogger = "root"

// logLevels are Kafka's names of the levels, in the order its refusal lists them.
var logLevels = []string{"DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN"}

func (h *Handlers) describeLoggers() []config.Entry {
	level := h.LogLevel.Level().String()
	return []config.Entry{{Name: rootLogger, Value: &level, Source: config.SourceBrokerLogger}}
}

// alterLoggers sets the level of the broker's log until it stops; name is the
// resource's.
func (h *Handlers) alterLoggers(r *kmsg.IncrementalAlterConfigsRequestResource, validateOnly bool) error {
	if err := h.checkBrokerName(r.ResourceName, "Node", "Unexpected node id. Expected %d, but received %s"); err != nil {
		return err
	}
	level, change := slog.LevelInfo, false
	for i := range r.Configs {
		op := &r.Configs[i]
		if op.Name != rootLogger {
			return protocol.Errorf(kerr.InvalidConfig, "Logger %s does not exist!", op.Name)
		}
		switch op.Op {
		case kmsg.IncrementalAlterConfigOpSet:
			var ok bool
			if level, ok = parseLevel(*op.Value); !ok {
				return protocol.Errorf(kerr.InvalidConfig,
					"Cannot set the log level of %s to %s as it is not a supported log level. Valid log levels are %s",
					op.Name, *op.Value, strings.Join(logLevels, ", "))
			}
			change = true
		case kmsg.IncrementalAlterConfigOpDelete:
			return protocol.Errorf(kerr.InvalidRequest, "Removing the log level of the %s logger is not allowed", op.Name)
		default:
			return protocol.Errorf(kerr.InvalidRequest, "%s operation is not allowed for the BROKER_LOGGER resource", op.Op)
		}
	}
	if change && !validateOnly {
		h.LogLevel.Set(level)
	}
	return nil
}

func parseLevel(name string) (slog.Level, bool) {
	switch at := slices.Index(logLevels, strings.ToUpper(name)); {
	case at < 0:
		return 0, false
	default:
		return []slog.Level{slog.LevelDebug, slog.LevelError, slog.LevelError, slog.LevelInfo, slog.LevelDebug, slog.LevelWarn}[at], true
	}
}
