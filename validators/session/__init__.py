"""Request level: a small streaming service behind a VIP, and a client that resumes its session when cut."""
