"""Running plans on Spark: the only package of Thalweg that may import pyspark."""
