"""How a check talks to devices: questions with names, answers with reasons, and the engines that carry them."""
