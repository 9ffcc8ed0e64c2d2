package telemetry

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// Log formats.
const (
	FormatText = "text"
	FormatJSON = "json"
)

// NewLogger writes records of at least level to w, one line each, as text or
// JSON. Any other format is text: configuration has checked it.
func NewLogger(format string, level slog.Leveler, w io.Writer) *slog.Logger {
	opts := &slog.HandlerOptions{Level: level}
	if format == FormatJSON {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}

// Discard is a logger that writes nothing.
func Discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// ParseLevel reads debug, info, warn or error in any case, and the names that
// Kafka's log4j files use for them.
func ParseLevel(name string) (slog.Level, error) {
	switch strings.ToLower(name) {
	case "trace", "debug":
		return slog.LevelDebug, nil
	case "info":
		return slog.LevelInfo, nil
	case "warn", "warning":
		return slog.LevelWarn, nil
	case "error", "fatal":
		return slog.LevelError, nil
	}
	return 0, fmt.Errorf("log level %q: want debug, info, warn or error", name)
}
