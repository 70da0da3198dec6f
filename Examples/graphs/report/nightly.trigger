# Submits the graph each night: operon trigger add nightly.trigger
name: nightly-report
graph: report.yaml
set: { day: "${event.date}" }
on: { cron: "0 23 * * *", timezone: Europe/Berlin }
# A report that still waits for its approval does not hold up that of the next night.
overlap: allow
# Each night has a report of its own, also those in which the coordinator was not there.
missed: all
