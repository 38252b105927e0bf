step|timestamp|metric
|2026-11-25 15:02:04.655855+00:00|24.2