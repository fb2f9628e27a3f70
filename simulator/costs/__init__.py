"""What a run over regions costs: electricity and its carbon by region and hour, traffic between regions, storage."""
