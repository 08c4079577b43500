from danlu.cli.main import main

main()
