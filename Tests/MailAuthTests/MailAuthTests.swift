// MailAuthTests
