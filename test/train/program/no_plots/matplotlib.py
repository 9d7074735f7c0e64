"""Stands before any installed matplotlib, so that test runs do not spend seconds on plots. report/plot_report_test.py tests plots."""

raise ImportError
