"""Sites: Spark applications in processes of their own, started, watched, told what to run."""
