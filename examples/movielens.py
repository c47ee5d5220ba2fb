"""Which films will they like? MovieLens 1M: 1,000,209 ratings of 3,706 films by 6,040 users.

wget https://files.grouplens.org/datasets/movielens/ml-1m.zip && unzip ml-1m.zip
python examples/movielens.py ml-1m/ratings.dat
python examples/movielens.py --generated
"""

import argparse

import hogwild
from hogwild.data.synthetic_ratings import movielens


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("file", nargs="?", metavar="FILE", help="ratings.dat of ml-1m.zip")
    parser.add_argument("--generated", action="store_true", help="data of the same shape")
    parsed = parser.parse_args()
    if parsed.generated:
        ratings, _ = movielens(1000, 600, 60_000)
    elif parsed.file:
        ratings = hogwild.load_ratings(parsed.file)
    else:
        parser.error("give the file, or --generated")
    print(ratings)

    train, test = ratings.split(0.1, seed=1)
    result = hogwild.train(train, rank=32, early_stopping=0.05)
    model = result.model
    print(f"{len(result.trace)} epochs, {result.trace[-1]['seconds']:.2f} s: {result.reason}")
    print(f"test RMSE {model.evaluate(test)['rmse']:.4f}")

    user = ratings.user_ids[0]
    films, stars = model.recommend(user, 5, exclude=ratings)
    print(f"for user {user}:", *(f"{film} ({s:.1f})" for film, s in zip(films, stars, strict=True)))
    film = films[0]
    print(f"like film {film}:", *model.similar_items(film, 5)[0])

    # A new user has given three films five stars
    factors, bias = model.fold_in(films[:3], [5.0, 5.0, 5.0])
    found, _ = model.recommend_for(factors, bias, 5, exclude_items=films[:3])
    print("for a new user:", *found)


if __name__ == "__main__":
    main()
