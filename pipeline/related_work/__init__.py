"""Related-work sections: tasks, ChatCite, its baselines, and their prompts."""
