"""The papers' pipelines from raw data to a trained model: functions of (data, parameters, generator, device)."""
