step|timestamp|metric
|2026-11-25 15:02:04.655807+00:00|0.0