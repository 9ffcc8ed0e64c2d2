package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/server"
	"github.com/barnabas-mq/barnabas/server/config"
	"github.com/barnabas-mq/barnabas/server/importer"
)

func importCommand() *cli.Command {
	own := []cli.Flag{
		&cli.StringSliceFlag{Name: "from", Aliases: []string{"f"}, Usage: "a data `FOLDER` of a stopped Apache Kafka broker, a value of its log.dirs; repeat it for each"},
		&cli.StringSliceFlag{Name: "topic", Aliases: []string{"t"}, Usage: "`NAME` of a topic, or a pattern with * and ?; may be repeated", DefaultText: "all topics"},
		&cli.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, Usage: "read and check everything, and change nothing", DisableDefaultText: true},
		&cli.BoolFlag{Name: "without-groups", Usage: "leave out what consumer groups have committed", DisableDefaultText: true},
		&cli.BoolFlag{Name: "without-metadata", Usage: "take the partitions' folders as they are: for a broker that used ZooKeeper", DisableDefaultText: true},
	}
	target := slices.DeleteFunc(serveFlags(), func(f cli.Flag) bool {
		return !slices.Contains([]string{"data", "config", "set", "node-id", "cluster-id"}, f.Names()[0])
	})
	return &cli.Command{
		Name: "import", Usage: "take topics over from the data folder of a stopped Apache Kafka broker", Action: importTopics,
		Flags: slices.Concat(own, target, []cli.Flag{outputFlag}),
		Description: "Both brokers must be stopped. Partitions are copied byte for byte and checked on the way; topics keep their names, ids,\n" +
			"settings, offsets and timestamps, groups what they have committed. The original is only read. Transactional ids and ACLs\n" +
			"are not taken over. A topic appears when it is whole: an import that was interrupted is run again and goes on with the\n" +
			"topics that are missing.\n\n" +
			"barnabas import --from /var/lib/kafka/data --data ./barnabas-data --topic 'orders*'",
	}
}

// importView is what `import -o json` prints.
type importView struct {
	DryRun  bool              `json:"dry_run"`
	Cluster string            `json:"cluster"`
	Data    string            `json:"data"`
	Topics  []importTopicView `json:"topics"`
	Present []string          `json:"already_there"`
	Groups  []string          `json:"groups"`
	Notes   []string          `json:"notes"`
}

type importTopicView struct {
	Topic      string            `json:"topic"`
	ID         string            `json:"id"`
	Partitions int               `json:"partitions"`
	Records    int64             `json:"records"`
	SizeBytes  int64             `json:"size_bytes"`
	Groups     int               `json:"groups"`
	Settings   map[string]string `json:"settings"`
}

func importTopics(c *cli.Context) error {
	folders := c.StringSlice("from")
	if len(folders) == 0 {
		return usagef("import: --from FOLDER says which data folder of Apache Kafka")
	}
	if _, err := asJSON(c); err != nil {
		return err
	}
	static, warnings, err := loadConfig(c, os.Environ())
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(c.App.ErrWriter, &slog.HandlerOptions{Level: slog.LevelWarn}))
	for _, w := range warnings {
		log.Warn(w)
	}
	if err := apart(static, folders); err != nil {
		return err
	}
	source, err := importer.Open(vfs.OS(), folders, c.Bool("without-metadata"))
	if err != nil {
		return importFailure(err)
	}
	defer source.Close()
	ctx, stop := untilInterrupted(c.Context)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	run := &importRun{
		c: c, source: source, static: static, log: log,
		env: offlineEnv(log),
	}
	if c.Bool("dry-run") {
		return run.dry(ctx)
	}
	return run.change(ctx)
}

// apart refuses a target that is one of the originals, or inside of one.
func apart(static *config.Static, folders []string) error {
	data, err := filepath.Abs(static.Snapshot().DataDir())
	if err != nil {
		return err
	}
	for _, f := range folders {
		from, err := filepath.Abs(f)
		if err != nil {
			return err
		}
		if rel, err := filepath.Rel(from, data); err == nil && filepath.IsLocal(rel) {
			return usagef("import: --data %s is in the folder %s, which is not to be changed: choose another", data, f)
		}
	}
	return nil
}

// importRun is one import.
type importRun struct {
	c      *cli.Context
	source *importer.Source
	static *config.Static
	log    *slog.Logger
	env    server.Env
}

func (r *importRun) options() importer.Options {
	return importer.Options{Topics: r.c.StringSlice("topic"), WithoutGroups: r.c.Bool("without-groups")}
}

// dry looks only.
func (r *importRun) dry(ctx context.Context) error {
	target, plan, err := r.plan(ctx)
	if err != nil {
		return err
	}
	err = plan.Check(ctx, target, newImportProgress(r.c.App.ErrWriter, plan))
	return errors.Join(r.failure(ctx, err, target.Dir()), r.report(plan, target.Dir(), true))
}

// plan looks at both sides and changes nothing.
func (r *importRun) plan(ctx context.Context) (*server.View, *importer.Plan, error) {
	target, err := server.Look(r.env, r.static)
	if err != nil {
		return nil, nil, r.targetFailure(err)
	}
	plan, err := r.source.Plan(ctx, target, r.options())
	if ctx.Err() != nil {
		return nil, nil, r.failure(ctx, ctx.Err(), target.Dir())
	}
	if err != nil {
		return nil, nil, importFailure(err)
	}
	return target, plan, nil
}

// change takes the topics over. A target that is new is made when it is known that
// something can go there.
func (r *importRun) change(ctx context.Context) (err error) {
	_, plan, err := r.plan(ctx)
	if err != nil {
		return err
	}
	node, err := server.OpenOffline(r.env, r.static)
	if err != nil {
		return r.targetFailure(err)
	}
	defer func() {
		if closeErr := node.Close(context.Background()); closeErr != nil {
			err = errors.Join(err, fmt.Errorf("close %s: %w", node.Dir(), closeErr))
		}
	}()
	err = plan.Import(ctx, node, newImportProgress(r.c.App.ErrWriter, plan))
	return errors.Join(r.failure(ctx, err, node.Dir()), r.report(plan, node.Dir(), false))
}

// targetFailure says what to do about a target that cannot be opened.
func (r *importRun) targetFailure(err error) error {
	if errors.Is(err, vfs.ErrLocked) {
		return fmt.Errorf("import: the data folder %s is in use: stop the broker first, or choose another folder with --data", r.static.Snapshot().DataDir())
	}
	return importFailure(err)
}

// importFailure adds what to do about a folder that this user may not use.
func importFailure(err error) error {
	if advice := permissionAdvice(err); advice != "" {
		return fmt.Errorf("import: %w\n  -> %s", err, advice)
	}
	return fmt.Errorf("import: %w", err)
}

// failure says what is there now and what to do.
func (r *importRun) failure(ctx context.Context, err error, data string) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return errors.New("import: interrupted: run it again for what is missing")
	case r.c.Bool("dry-run"):
		return fmt.Errorf("import: not everything can be taken over:\n%w", err)
	}
	return fmt.Errorf("import: not everything was taken over:\n%w\n%s stays: what the table names is whole, and nothing of the rest is in the way. "+
		"Put right what is wrong, or name other topics with --topic, and run it again: it goes on with what is missing", err, data)
}

// report prints what was taken over.
func (r *importRun) report(plan *importer.Plan, data string, dry bool) error {
	v := importView{DryRun: dry, Cluster: r.source.ClusterID, Data: data, Topics: []importTopicView{}, Present: append([]string{}, plan.Present...), Groups: append([]string{}, plan.Groups...), Notes: append([]string{}, r.source.Notes...)}
	for _, t := range plan.Topics {
		if !t.Taken {
			continue
		}
		settings := map[string]string{} // none is {} in JSON
		maps.Copy(settings, t.Configs)
		v.Topics = append(v.Topics, importTopicView{
			Topic: t.Name, ID: t.TopicID(), Partitions: len(t.Partitions), Records: t.Records(), SizeBytes: t.SizeBytes,
			Groups: len(t.Offsets), Settings: settings,
		})
		for _, n := range t.Notes {
			v.Notes = append(v.Notes, "topic "+t.Name+": "+n)
		}
	}
	return show(r.c, v, v.print)
}

func (v *importView) print(w io.Writer) error {
	t := newTable("TOPIC", "PARTITIONS", "RECORDS", "SIZE", "GROUPS", "SETTINGS")
	for _, topic := range v.Topics {
		t.add(topic.Topic, topic.Partitions, topic.Records, sizeText(topic.SizeBytes), topic.Groups, len(topic.Settings))
	}
	if err := t.print(w); err != nil {
		return err
	}
	for _, n := range v.Notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	for _, name := range v.Present {
		fmt.Fprintf(w, "note: topic %s is there already, by an earlier import, and was left as it is\n", name)
	}
	done := "taken over into " + v.Data
	if v.DryRun {
		done = "can be taken over; nothing was changed"
	}
	_, err := fmt.Fprintf(w, "%s and what %s committed %s\n", plural(len(v.Topics), "topic"), plural(len(v.Groups), "group"), done)
	return err
}
